"""What waits to be sent of a connection's media, and what goes when it is too much: thinned by flag (B10). Pure.

Order of what goes: droppable frames, then what needs other frames (until the next key frame), then key frames, then
audio; within one of these the oldest first. The last frame of a stream goes last. Text is not here.
"""

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from gateway.domain.wire.media import MediaFlag, MediaHead, MediaType

MAX_TRACKS: Final = 64
"""Whose key frames are remembered; a forgotten one begins anew at its next."""
MAX_FRAMES: Final = 1_024
"""Of one queue, however small they are."""
END_SECONDS: Final = 30.0
"""The last frame of a stream may wait for so long. Not for ever: who takes nothing would keep its memory from all."""
_DROPPABLE, _DELTA, _KEY, _AUDIO, _END = range(5)


class Dropped(StrEnum):
    """Why a frame was not sent."""

    DROPPABLE = "droppable"
    DELTA = "delta"
    """It needed another frame: for room, or because that one was not sent."""
    KEY = "key"
    AUDIO = "audio"
    END = "end"
    AUDIO_ONLY = "audio_only"
    """Video, while the connection gets audio only."""
    STALE = "stale"
    """It waited for too long."""
    PACED = "paced"
    """Held back from a client that comes again and again (A13)."""
    MEMORY = "memory"
    """All queues of the gateway together are full."""
    OVERLOAD = "overload"
    """The gateway delivers as much media as it may."""
    CLOSED = "closed"
    """The connection ended first."""


_REASONS: Final = (Dropped.DROPPABLE, Dropped.DELTA, Dropped.KEY, Dropped.AUDIO, Dropped.END)


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """How media is degraded; may be swapped at any time (the route table's `degrade`)."""

    audio_only: bool = True
    """Under pressure video may fall back to audio only. Otherwise audio and key frames are equals."""
    max_age_seconds: float = 2.0
    """What has waited for longer is of no use to anybody."""


class Waiting(NamedTuple):
    """A frame in the queue. `data`: as it is written."""

    head: MediaHead
    data: bytes
    number: int
    at: float

    @property
    def needs_others(self) -> bool:
        return self.head.type is MediaType.VIDEO and not self.head.flags & (MediaFlag.KEY | MediaFlag.END)


@dataclass(slots=True)
class _Track:
    """One stream of video: numbers of the queue's own count."""

    key: int = -1
    """Last key frame that came in."""
    sent_key: int = -1
    broken: int = -1
    """Last frame that was dropped and that others need."""


class MediaQueue:
    """Of one connection. Every frame that is offered is taken once or counted in `dropped` once."""

    __slots__ = ("_by_rank", "_max_bytes", "_number", "_tracks", "bytes", "dropped")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._by_rank: tuple[deque[Waiting], ...] = tuple(deque() for _ in range(5))
        self._tracks: OrderedDict[bytes, _Track] = OrderedDict()
        self._number = 0
        self.bytes = 0
        self.dropped: Counter[tuple[MediaType, Dropped]] = Counter()
        """The caller counts on, and empties it."""

    def __len__(self) -> int:
        return sum(map(len, self._by_rank))

    def offer(self, head: MediaHead, data: bytes, now: float, policy: MediaPolicy) -> None:
        """The newest frame; makes room by dropping what matters least, which may be this one."""
        frame = Waiting(head, data, self._number, now)
        self._number += 1
        if head.type is MediaType.VIDEO:
            track = self._track(head.track)
            if head.flags & MediaFlag.KEY:
                track.key = frame.number
            elif frame.needs_others and track.key <= track.broken:
                self._count(frame, Dropped.DELTA)
                return
        self._by_rank[_rank(head, policy)].append(frame)
        self.bytes += len(data)
        while self.bytes > self._max_bytes or len(self) > MAX_FRAMES:
            self._drop_least()

    def refuse(self, head: MediaHead, reason: Dropped) -> None:
        """A frame that is not even queued; what needs it is of no use either."""
        number = self._number
        self._number += 1
        if head.type is MediaType.VIDEO and not head.flags & MediaFlag.DROPPABLE:
            self._track(head.track).broken = number
        self.dropped[head.type, reason] += 1

    def peek(self, now: float, policy: MediaPolicy) -> Waiting | None:
        """The oldest frame that is still of use; those before it are dropped."""
        while (rank := self._oldest()) is not None:
            frame = self._by_rank[rank][0]
            patience_seconds = max(END_SECONDS, policy.max_age_seconds) if rank == _END else policy.max_age_seconds
            if now - frame.at > patience_seconds:
                self._drop(rank, Dropped.STALE)
            elif frame.needs_others and self._is_broken(frame):
                self._drop(rank, Dropped.DELTA)
            else:
                return frame
        return None

    def take(self, frame: Waiting) -> None:
        """What `peek` returned goes out now."""
        rank = self._oldest()
        if rank is None or self._by_rank[rank].popleft() is not frame:
            raise RuntimeError("only what peek returned can be taken")
        self.bytes -= len(frame.data)
        if frame.head.type is MediaType.VIDEO:
            if frame.head.flags & MediaFlag.KEY:
                self._track(frame.head.track).sent_key = frame.number
            if frame.head.flags & MediaFlag.END:
                self._tracks.pop(frame.head.track, None)

    def keep_audio_only(self) -> None:
        """Drop all video but the ends of streams."""
        for rank in (_DROPPABLE, _DELTA, _KEY):
            for _ in range(len(self._by_rank[rank])):
                frame = self._by_rank[rank][0]
                if frame.head.type is MediaType.VIDEO:
                    self._drop(rank, Dropped.AUDIO_ONLY)
                else:
                    self._by_rank[rank].rotate(-1)

    def clear(self, reason: Dropped) -> None:
        for rank in range(5):
            while self._by_rank[rank]:
                self._drop(rank, reason)

    def _oldest(self) -> int | None:
        """The rank whose first frame came first."""
        first = None
        for rank, frames in enumerate(self._by_rank):
            if frames and (first is None or frames[0].number < self._by_rank[first][0].number):
                first = rank
        return first

    def _is_broken(self, frame: Waiting) -> bool:
        track = self._tracks.get(frame.head.track)
        return track is None or track.sent_key <= track.broken

    def _drop_least(self) -> None:
        rank = next(rank for rank, frames in enumerate(self._by_rank) if frames)
        is_audio = self._by_rank[rank][0].head.type is MediaType.AUDIO
        self._drop(rank, Dropped.AUDIO if rank == _KEY and is_audio else _REASONS[rank])

    def _drop(self, rank: int, reason: Dropped) -> None:
        frame = self._by_rank[rank].popleft()
        self.bytes -= len(frame.data)
        if frame.head.type is MediaType.VIDEO and not frame.head.flags & MediaFlag.DROPPABLE:
            track = self._track(frame.head.track)
            track.broken = max(track.broken, frame.number)
        self._count(frame, reason)

    def _count(self, frame: Waiting, reason: Dropped) -> None:
        self.dropped[frame.head.type, reason] += 1

    def _track(self, ident: bytes) -> _Track:
        track = self._tracks.get(ident)
        if track is None:
            track = self._tracks[ident] = _Track()
            if len(self._tracks) > MAX_TRACKS:
                self._tracks.popitem(last=False)
        else:
            self._tracks.move_to_end(ident)
        return track


def _rank(head: MediaHead, policy: MediaPolicy) -> int:
    if head.flags & MediaFlag.END:
        return _END
    if head.flags & MediaFlag.DROPPABLE:
        return _DROPPABLE
    if head.type is MediaType.AUDIO:
        return _AUDIO if policy.audio_only else _KEY
    return _KEY if head.flags & MediaFlag.KEY else _DELTA


__all__ = ["END_SECONDS", "MAX_FRAMES", "MAX_TRACKS", "Dropped", "MediaPolicy", "MediaQueue", "Waiting"]
