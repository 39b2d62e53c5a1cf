"""Runs in Redis (ports.RunStore): one script a call, each call one attempt; a page of a text may take several.

Its answers are read in run_answers.py, texts in run_texts.py.
"""

from collections.abc import Sequence
from typing import Final

from gateway.adapters.redis_store import run_answers as read
from gateway.adapters.redis_store.entering import ATTEMPTS, enter, entering
from gateway.adapters.redis_store.keys import session_keys, text_keys
from gateway.adapters.redis_store.reveals import Reveals
from gateway.adapters.redis_store.run_texts import Life, Places, border, unescape, whole_part
from gateway.adapters.redis_store.scripts import StoreScripts
from gateway.adapters.resp import Reply, Router, Script
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.frames import payload_head
from gateway.domain.wire.ids import RunId, SessionRef
from gateway.ports import (
    OpenRun,
    RunInfo,
    RunRefusal,
    RunRefused,
    RunText,
    RunWriter,
    SnapshotPlan,
    Stopped,
    StopRun,
    StoreUnavailable,
    Track,
)

Argument = bytes | str | int
_PAGE_MIN_BYTES: Final = 24
"""Room for a code point (four bytes, or an escape of six) and for what the end of a page cuts off."""
_STEP_BYTES: Final = 128 * 1024
"""One read on the way to a place that is not known: a fraction of a millisecond of Redis."""


class RedisRunStore:
    """`appends` carries what writes, `reads` what may be large.

    `stop_run` is one of the scripts of the exchange, because it writes to the outbox too.
    """

    def __init__(
        self,
        appends: Router,
        reads: Router,
        scripts: StoreScripts,
        stop_run: Script,
        reveals: Reveals | None = None,
    ) -> None:
        self._appends = appends
        self._reads = reads
        self._scripts = scripts
        self._stop_run = stop_run
        self._places = Places()
        self._reveals = reveals

    async def open_run(self, request: OpenRun) -> RunWriter | RunRefused:
        if self._reveals is not None:
            self._reveals.check(request.session)
        keys, texts = session_keys(request.session), text_keys(request.session, request.run)
        arguments: list[Argument] = [
            payload_head(request.session.session),
            request.run,
            request.start_body,
            "1" if request.may_start else "",
            "1" if request.may_attach else "",
            request.gateway or "",
            "" if request.due_ms is None else request.due_ms,
            request.owner or "",
        ]
        answer, state = await entering(
            lambda endpoint: endpoint.evaluate(
                self._scripts.open_run,
                (keys.meta, keys.log, keys.gws, keys.clients, *texts),
                [endpoint.incarnation, *arguments],
                repeats=False,
            ),
            self._appends,
            self._scripts.enter,
            keys,
            request.owner,
            may_make=request.may_start,
        )
        if answer is None:
            return _absent(state)
        if self._reveals is not None and answer[0] == b"o":
            answer[1] = await self._reveals.seen(request.session, answer[1], head_at=1, live_at=8)
        return read.read_writer(answer)

    async def run(self, session: SessionRef, run: RunId) -> RunInfo | None:
        infos = await self._runs(session, run)
        return infos[0] if infos else None

    async def runs(self, session: SessionRef) -> list[RunInfo]:
        return await self._runs(session, "")

    async def _runs(self, session: SessionRef, run: str) -> list[RunInfo]:
        keys = session_keys(session)
        return read.read_runs(await self._reads.evaluate(self._scripts.run, (keys.meta,), [run], repeats=True))

    async def keep_alive(self, session: SessionRef, run: RunId, epoch: int) -> RunRefused | None:
        keys = session_keys(session)
        answer = await self._appends.evaluate(self._scripts.keep_alive, (keys.meta,), [run, epoch], repeats=True)
        return None if answer == b"k" else read.read_refused(*answer.split(b"\n", 1))

    async def stop_run(self, request: StopRun) -> Stopped | RunRefused:
        if self._reveals is not None:
            self._reveals.check(request.session)
        keys, texts = session_keys(request.session), text_keys(request.session, request.run)
        seen = request.seen
        arguments: list[Argument] = [
            payload_head(request.session.session),
            request.run,
            request.reason,
            request.fields,
            request.client or "",
            "" if seen is None else seen.seq,
            "" if seen is None else seen.at,
            request.item,
            "" if request.due_ms is None else request.due_ms,
        ]
        answer, state = await entering(
            lambda endpoint: endpoint.evaluate(
                self._stop_run,
                (keys.meta, keys.log, keys.gws, keys.clients, keys.kept, keys.outbox, keys.routes, *texts),
                [endpoint.incarnation, *arguments],
                repeats=False,
            ),
            self._appends,
            self._scripts.enter,
            keys,
            None,
            may_make=False,
        )
        if answer is None:
            return _absent(state)
        if self._reveals is not None and answer[0] == b"s":
            answer[1] = await self._reveals.seen(request.session, answer[1], head_at=1)
        return read.read_stopped(answer)

    async def snapshot(self, session: SessionRef) -> SnapshotPlan | None:
        """A log that another server wrote gets its fork first, as for pages."""
        keys = session_keys(session)
        answer = await self._read(session, self._scripts.snapshot, (keys.meta, keys.log, keys.kept), [])
        found = read.read_snapshot(answer)
        if self._reveals is not None and found is not None:
            self._reveals.noticed(session, found.log)
        return found

    # ---- texts ----

    async def run_text(
        self, session: SessionRef, run: RunId, track: Track, start: int, until: int, max_bytes: int
    ) -> RunText:
        """May be shorter than `max_bytes`; begins at the code point border at or before `start`."""
        key = text_keys(session, run)[track is Track.THINKING]
        place = self._places.find(key, start)
        offset, escaped, expected = (start, place[1], place[0]) if place else (0, 0, None)
        while True:
            wanted = max(max_bytes, _PAGE_MIN_BYTES, min(start - offset, _STEP_BYTES))
            answer = await self._read(
                session, self._scripts.run_text, (session_keys(session).meta, key),
                [run, track, escaped, escaped + wanted - 1],
            )  # fmt: skip
            if answer[0] == b"n":
                return RunText(None, start, b"", 0)
            line, first_seq, kept = answer[1].split(b"\n")
            life = Life(Line(line), int(first_seq))
            if expected is not None and life != expected:
                # What was remembered is of another text: from the start.
                offset, escaped, expected = 0, 0, None
                continue
            expected = life
            piece = whole_part(answer[2])
            text = unescape(piece)
            if text and offset + len(text) <= start:
                offset, escaped = offset + len(text), escaped + len(piece)
                continue
            if start <= offset and offset + len(text) <= until and len(text) <= max_bytes:
                self._places.note(key, offset + len(text), life, escaped + len(piece))
            return _slice(life.line, offset, text, start, min(until, start + max_bytes), int(kept))

    async def _read(
        self, session: SessionRef, script: Script, keys: Sequence[bytes], arguments: Sequence[Argument]
    ) -> Reply:
        """What it answers once meta names the server that answers."""
        for _ in range(ATTEMPTS):
            endpoint = self._reads.of(keys[0])
            answer = await endpoint.evaluate(script, keys, [endpoint.incarnation, *arguments], repeats=True)
            if answer[0] != b"s":
                return answer
            await enter(self._reads.of(keys[0]), self._scripts.enter, session_keys(session), None, may_make=False)
        raise StoreUnavailable("the session moves between servers", outcome_unknown=False)


def _absent(state: bytes) -> RunRefused:
    return RunRefused(RunRefusal.GONE if state == b"deleted" else RunRefusal.NOT_FOUND)


def _slice(line: Line, offset: int, text: bytes, start: int, until: int, kept: int) -> RunText:
    """`text` lies at `offset`. Whole code points; at least one while there is any before `until`."""
    first = border(text, max(0, start - offset))
    last = border(text, until - offset)
    if last <= first < len(text) and until > offset + first:
        last = first + 1
        while last < len(text) and text[last] & 0xC0 == 0x80:
            last += 1
    return RunText(line, offset + first, text[first:last], kept)


__all__ = ["RedisRunStore"]
