"""Rebuilds what has left the log for a client below it: gaps, kept items, the text of each run (G4, design.md 4).

One step at a time, each within the client's room and the recovery budget; a fork or a text that vanished meanwhile
starts over, going on where each text was. Called by core.resume.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from gateway.core.connection import Connection
from gateway.domain.sessions.log_state import LogState
from gateway.domain.sessions.position import Gap
from gateway.domain.sessions.rebuild import Kept, Move, moves, plan
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import RunId
from gateway.ports import RunBrief, RunStore, SnapshotPlan, Track

ENVELOPE_BYTES: Final = 512
"""Of a snapshot frame beside its text, generously."""
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_Progress = dict[tuple[RunId, Track], int]


@dataclass(slots=True)
class _Text:
    """One text of one run, from `at` to `until`."""

    brief: RunBrief
    track: Track
    at: int
    until: int
    total: int
    """What the text had up to the retained log; `until` is less when the rest is not kept, or cut."""
    is_cut: bool
    is_first: bool
    """The run's first part carries its `run_start`."""
    is_last: bool
    """The run's last part says how the run stands."""


@dataclass(slots=True)
class Rebuilding:
    """Under way for one connection. `sent`: how much of each text it was sent on this line, also before a new start."""

    line: Line
    sent: _Progress = field(default_factory=dict)
    missing: set[tuple[RunId, Track]] = field(default_factory=set)
    """Texts that were not there although the plan named them; the second time they are `partial`."""
    log: LogState | None = None
    """None: the plan is to be read."""
    texts: list[_Text] = field(default_factory=list)
    after: list[Kept | Move] = field(default_factory=list)

    def start_over(self) -> None:
        self.log = None
        self.texts.clear()
        self.after.clear()


class Snapshots:
    """One per gateway."""

    def __init__(self, runs: RunStore, merged_frame_bytes: int) -> None:
        self._runs = runs
        self._frame_bytes = merged_frame_bytes

    async def step(self, connection: Connection, room: int) -> SnapshotPlan | None:
        """One read and what it allows to write. Raises StoreUnavailable.

        Returns a plan that the caller has to judge before anything is written (then `begin`), else None.
        """
        work = connection.rebuilding
        if work is None or work.log is None:
            found = await self._runs.snapshot(connection.session.ref)
            if found is None:
                raise NoSession
            return found if connection.may_read_on else None
        if work.texts:
            await self._go_on(connection, work, room)
        return None

    def begin(self, connection: Connection, found: SnapshotPlan) -> None:
        """The connection stands on the plan's line, below its retained log."""
        log = found.log
        work = connection.rebuilding
        if work is None or work.line != log.line:
            work = connection.rebuilding = Rebuilding(log.line)
        work.log = log
        work.texts = _texts(connection, work.sent, found.runs)
        todo = plan(connection.sent_seq, log, found.kept, has_texts=bool(work.texts))
        for step in todo.before:
            if isinstance(step, Gap):
                connection.announce_gap(step, log)
            else:
                _write_kept(connection, step)
        work.after = todo.after
        if not work.texts:
            self._finish(connection, work, log, has_texts=False)

    def begin_live(self, connection: Connection, found: SnapshotPlan) -> None:
        """It wants no more of the past than kept items, up to where it began."""
        until = connection.kept_until or 0
        connection.kept_until = None
        items = [Kept(*item) for item in found.kept if connection.sent_seq < item.seq <= until]
        if connection.sent_seq < until:
            _write_steps(connection, found.log, moves(connection.sent_seq, until, items))
        connection.is_below_log = connection.sent_seq < found.log.lost

    # ---- texts -----------------------------------------------------------------------------------------------

    async def _go_on(self, connection: Connection, work: Rebuilding, room: int) -> None:
        text, log = work.texts[0], work.log
        data = b""
        if text.at < text.until:
            run, ref = text.brief.run, connection.session.ref
            found = await self._runs.run_text(ref, run, text.track, text.at, text.until, room)
            if connection.rebuilding is not work or not connection.may_read_on:
                return  # it was told something else meanwhile: the next step begins anew, or reads this again
            data = found.text if found.line == work.line else b""
            if not data:
                if found.line not in (None, work.line) or (run, text.track) not in work.missing:
                    work.missing.add((run, text.track))
                    work.start_over()
                    return
                text.until = text.at
        if log is None:
            return
        end = text.at + len(data)
        is_whole = end >= text.until
        frames = list(self._frames(connection, work, log, text, data, is_whole=is_whole))
        connection.write(b"".join(frames))
        text.at = work.sent[text.brief.run, text.track] = end
        if is_whole:
            work.texts.pop(0)
            if not work.texts:
                self._finish(connection, work, log, has_texts=True)

    def _frames(
        self, connection: Connection, work: Rebuilding, log: LogState, text: _Text, data: bytes, *, is_whole: bool
    ) -> Iterator[bytes]:
        """`data` begins at `text.at` and is whole code points."""
        brief, at = text.brief, text.at
        start = brief.start_body if text.is_first and (brief.run, text.track) not in work.sent else b""
        if start and data and len(start) > self._frame_bytes // 2:
            yield _frame(connection, text, at, "", {"start": _decode(start)})
            start = b""
        while True:
            piece = _fitting(data, self._frame_bytes - ENVELOPE_BYTES - len(start))
            data = data[len(piece) :]
            more: dict[str, Any] = {"start": _decode(start)} if start else {}
            start = b""
            is_last = is_whole and not data
            if is_last:
                more |= _ending(text, log)
                if len(work.texts) == 1:
                    more["cursor"] = str(log.cursor(_first_move(work.after, connection.sent_seq)))
            yield _frame(connection, text, at, piece.decode("utf-8", "replace"), more, is_last=is_last)
            at += len(piece)
            if not data:
                return

    def _finish(self, connection: Connection, work: Rebuilding, log: LogState, *, has_texts: bool) -> None:
        """All texts are whole: the position may pass what they stand for."""
        after = work.after
        if has_texts and after and isinstance(after[0], Move):
            connection.stand_at(after[0].seq)  # the last text's frame said so
            after = after[1:]
        _write_steps(connection, log, after)
        connection.is_below_log = False
        work.start_over()  # the log may be trimmed again before it is read: then each text goes on where it was


class NoSession(Exception):
    """There is no meta: only a claim makes it again."""


def _texts(connection: Connection, sent: _Progress, runs: Sequence[RunBrief]) -> list[_Text]:
    texts: list[_Text] = []
    for brief in runs:
        cut = None if connection.cuts is None else connection.cuts.of(brief.run)
        has_thinking = brief.thinking_until > 0 and cut is None
        if has_thinking:
            at = sent.get((brief.run, Track.THINKING), 0)
            until = min(brief.thinking_until, brief.thinking_kept)
            texts.append(_Text(brief, Track.THINKING, min(at, until), until, brief.thinking_until, False, True, False))
        until = min(brief.text_until, brief.text_kept)
        is_cut = cut is not None and (cut.text_until < brief.text_until or brief.thinking_until > 0)
        if cut is not None:
            until = min(until, cut.text_until)
        at = min(sent.get((brief.run, Track.TEXT), 0), until)
        texts.append(_Text(brief, Track.TEXT, at, until, brief.text_until, is_cut, not has_thinking, True))
    return texts


def _ending(text: _Text, log: LogState) -> dict[str, Any]:
    """What the last part of a text says of it, and that of a run of the run."""
    more: dict[str, Any] = {}
    if text.is_cut:
        more["cut"] = True
    elif text.until < text.total:
        more |= {"partial": True, "bytes": text.total}
    if text.is_last:
        brief = text.brief
        if not brief.is_open and brief.last_seq <= log.lost and brief.end_body:
            more["end"] = _decode(brief.end_body)
        else:
            more["open"] = True  # or its end is in the retained log, which follows
    return more


def _frame(
    connection: Connection, text: _Text, at: int, piece: str, more: dict[str, Any], *, is_last: bool = False
) -> bytes:
    head = {"kind": "snapshot", "run": text.brief.run, "track": text.track.value, "at": at, "text": piece}
    return connection.encode_control(head | {"last": is_last} | more)


def _fitting(data: bytes, max_bytes: int) -> bytes:
    """As many whole code points from the beginning of `data` as fit a JSON string of so many bytes; at least one."""
    size = max(max_bytes, 16)
    while True:
        piece = _whole(data[:size]) if len(data) > size else data
        encoded = len(_encode(piece.decode("utf-8", "replace")))
        if encoded <= max(max_bytes, 16) or len(piece) <= 4:
            return piece
        size = max(4, len(piece) * max_bytes // encoded - 4)


def _whole(data: bytes) -> bytes:
    """Without the code point that its end cuts."""
    end = len(data)
    while end > 0 and end > len(data) - 4 and data[end - 1] & 0xC0 == 0x80:
        end -= 1
    if end and data[end - 1] >= 0xC0:
        lead = data[end - 1]
        needed = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        if len(data) - (end - 1) < needed:
            return data[: end - 1]
    return data


def _first_move(after: Sequence[Kept | Move], position: int) -> int:
    return after[0].seq if after and isinstance(after[0], Move) else position


def _write_steps(connection: Connection, log: LogState, steps: Sequence[Kept | Move]) -> None:
    for step in steps:
        if isinstance(step, Kept):
            _write_kept(connection, step)
        else:
            connection.send_control({"kind": "snapshot", "cursor": str(log.cursor(step.seq))})
            connection.stand_at(step.seq)


def _write_kept(connection: Connection, item: Kept) -> None:
    connection.write(connection.shared.encode(connection.session, item.seq, item.frame))
    connection.sent_seq = item.seq
    connection.shared.measures.messages_delivered += 1


__all__ = ["NoSession", "Rebuilding", "Snapshots"]
