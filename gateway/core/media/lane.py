"""The media of one connection: the lane below all text (B2). Sent only when no text waits, and little is on its way.

Text written at any moment waits behind one media frame that the kernel has not sent, and behind `window_bytes` of media
that the client has not answered for, whatever proxies hold. Must never touch the queue of text. Called by the desk.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final

from gateway.core.pacing import takes_extras
from gateway.domain.sessions.states import State
from gateway.domain.streams.media_pressure import Pressure
from gateway.domain.streams.media_queue import Dropped, MediaPolicy, MediaQueue
from gateway.domain.wire.media import MediaHead, MediaType
from gateway.ports import Link
from gateway.settings import MediaSettings

if TYPE_CHECKING:
    from gateway.core.connection import Connection

TELL_SECONDS: Final = 1.0
"""Between two `media_dropped` frames."""
_NONCE: Final = b"m"
"""Begins the payload of pings that ask how much media arrived; those of the heartbeats have eight bytes."""
_PINGS_A_WINDOW: Final = 4
_TOO_MUCH: Final = (Dropped.KEY, Dropped.AUDIO, Dropped.STALE)
"""Thinning did not help."""


class MediaMemory:
    """What waits in all lanes of a gateway; above its bound only a window each for those to whom it goes at once."""

    __slots__ = ("max_bytes", "used_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0


class MediaLane:
    """Made for a connection that takes media. `offered` is at any time `delivered` + dropped + waiting."""

    __slots__ = ("_acked_bytes", "_connection", "_is_too_much", "_memory", "_noted_bytes", "_pinged_bytes",
                 "_pressure", "_queue", "_told_at", "_types", "_untold", "_untold_upload", "_window_bytes", "delivered",
                 "dropped", "is_closed", "offered")  # fmt: skip

    def __init__(self, connection: "Connection", settings: MediaSettings, memory: MediaMemory) -> None:
        self._connection = connection
        self._types = frozenset(kind for kind in MediaType if connection.capabilities.takes(kind))
        self._window_bytes = settings.window_bytes
        self._queue = MediaQueue(settings.queue_bytes)
        self._memory = memory
        self._noted_bytes = 0
        self._pressure = Pressure()
        self._is_too_much = False
        self._acked_bytes = 0
        self._pinged_bytes = 0
        """Of `connection.media_bytes`: up to the newest answer, and up to the newest question."""
        self._untold: Counter[MediaType] = Counter()
        self._untold_upload = 0
        self._told_at = float("-inf")
        self.offered = 0
        self.delivered = 0
        self.dropped = 0
        self.is_closed = False

    @property
    def waiting_bytes(self) -> int:
        return self._queue.bytes

    @property
    def is_audio_only(self) -> bool:
        return self._pressure.is_audio_only

    @property
    def is_idle(self) -> bool:
        """Nothing waits, nothing is to be told, and video is as it should be."""
        is_told = not self._untold and not self._untold_upload
        return self.is_closed or (not self._queue and is_told and not self._pressure.is_audio_only)

    def wants(self, head: MediaHead) -> bool:
        connection = self._connection
        is_own = head.source == connection.client.encode()
        return head.type in self._types and bool(connection.generation) and not is_own

    def offer(self, head: MediaHead, data: bytes, now: float, policy: MediaPolicy) -> None:
        self.offered += 1
        if self.is_closed or self._connection.is_ending:
            self._queue.refuse(head, Dropped.CLOSED)
        elif not takes_extras(self._connection):
            self._queue.refuse(head, Dropped.PACED)
        elif self._memory.used_bytes + len(data) > self._memory.max_bytes and not self._goes_at_once(len(data)):
            self._queue.refuse(head, Dropped.MEMORY)
        elif self._pressure.is_audio_only and head.type is MediaType.VIDEO and not head.is_end:
            self._queue.refuse(head, Dropped.AUDIO_ONLY)
        else:
            self._queue.offer(head, data, now, policy)
        self._count()

    def refuse(self, head: MediaHead) -> None:
        """A frame that the gateway has no time for."""
        self.offered += 1
        self._queue.refuse(head, Dropped.OVERLOAD)
        self._count()

    def upload_dropped(self) -> None:
        """A frame that this client sent was not taken."""
        self._untold_upload += 1

    def turn(self, now: float, policy: MediaPolicy, *, is_poor: bool) -> None:
        """Send what may be sent now, judge how it goes, say what was dropped."""
        connection = self._connection
        if connection.is_ending:
            self._close()
            return
        if connection.link is None:
            return
        self._judge(now, policy, is_poor=is_poor)
        if connection.is_current:
            self._send(now, policy)
        else:
            self._queue.peek(now, policy)  # drops what has become too old
        self._count()
        self._tell(now)

    def on_pong(self, payload: bytes) -> bool:
        """True: an answer to a question of ours; there may be room now."""
        if payload[:1] != _NONCE:
            return False
        arrived = int.from_bytes(payload[1:], "big")
        if self._acked_bytes < arrived <= self._pinged_bytes:
            self._acked_bytes = arrived
        return True

    def _judge(self, now: float, policy: MediaPolicy, *, is_poor: bool) -> None:
        """Whether it gets video."""
        was_audio_only = self._pressure.is_audio_only
        self._pressure.look(
            now,
            is_behind=self._connection.state is State.LAGGING,
            is_too_much=self._is_too_much or is_poor,
            may_drop_video=policy.audio_only and MediaType.AUDIO in self._types,
        )
        self._is_too_much = False
        if self._pressure.is_audio_only and not was_audio_only:
            self._queue.keep_audio_only()

    def _send(self, now: float, policy: MediaPolicy) -> None:
        connection, link, window = self._connection, self._connection.link, self._window_bytes
        while link is not None and connection.out is None and (frame := self._queue.peek(now, policy)) is not None:
            on_the_way = connection.media_bytes - self._acked_bytes
            if on_the_way and on_the_way + len(frame.data) > window:
                self._ask(link)
                return
            if not link.is_clear():
                return
            self._queue.take(frame)
            connection.write_media(frame.data)
            self.delivered += 1
            measures = connection.shared.measures
            measures.media_delivered[frame.head.type.name.lower()] += 1
            measures.media_bytes_delivered += len(frame.data)
            unasked = connection.media_bytes - self._pinged_bytes
            if self._pinged_bytes == self._acked_bytes or unasked >= window // _PINGS_A_WINDOW:
                self._ask(link)

    def _goes_at_once(self, size_bytes: int) -> bool:
        """Memory is full of what slow connections wait for: the others go on."""
        connection = self._connection
        ahead_bytes = self.waiting_bytes + connection.media_bytes - self._acked_bytes
        if not connection.is_current or (ahead_bytes and ahead_bytes + size_bytes > self._window_bytes):
            return False
        return connection.link is not None and connection.link.is_clear()

    def _ask(self, link: Link) -> None:
        """Whether all of it has arrived."""
        written = self._connection.media_bytes
        if self._pinged_bytes < written:
            self._pinged_bytes = written
            link.ping(_NONCE + written.to_bytes(8, "big"))

    def _count(self) -> None:
        """What the queue holds now, and what it has dropped since the last time."""
        self._memory.used_bytes += self._queue.bytes - self._noted_bytes
        self._noted_bytes = self._queue.bytes
        if not self._queue.dropped:
            return
        measured = self._connection.shared.measures.media_dropped
        for (kind, reason), count in self._queue.dropped.items():
            self._untold[kind] += count
            self.dropped += count
            measured[reason.value] += count
            self._is_too_much |= reason in _TOO_MUCH
        self._queue.dropped.clear()

    def _tell(self, now: float) -> None:
        connection = self._connection
        if not (self._untold or self._untold_upload) or now - self._told_at < TELL_SECONDS:
            return
        if not takes_extras(connection) or connection.unsent_bytes > connection.shared.limits.unsent_bytes:
            return
        payload = {
            "kind": "media_dropped",
            "count": self._untold.total(),
            "audio": self._untold[MediaType.AUDIO],
            "video": self._untold[MediaType.VIDEO],
            "audio_only": self._pressure.is_audio_only,
        }
        if self._untold_upload:
            payload["upload"] = self._untold_upload
        self._untold.clear()
        self._untold_upload = 0
        self._told_at = now
        connection.send_control(payload)

    def _close(self) -> None:
        self._queue.clear(Dropped.CLOSED)
        self._count()
        self.is_closed = True


__all__ = ["TELL_SECONDS", "MediaLane", "MediaMemory"]
