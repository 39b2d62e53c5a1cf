"""Lets messages be seen once enough replicas have them (append.min_replicas, G2): mark, WAIT, reveal.

One round after the other, however many appends wait: a mark that is written after their answers covers all of them, so
rounds have connections of their own and no append stands behind a WAIT. What is owed when replicas are missing stays
owed: rounds go on until there are enough. Whoever reads a session and meets what another gateway left owes it, too.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import structlog

from gateway.adapters.redis_store.keys import session_keys
from gateway.adapters.redis_store.scripts import StoreScripts
from gateway.adapters.resp import Endpoint, Reply, ReplyError, Router
from gateway.domain.measures import Measures
from gateway.domain.sessions.log_state import LogState
from gateway.domain.wire.ids import SessionRef
from gateway.ports import StoreUnavailable, Unreplicated
from gateway.settings import AppendSettings

log = structlog.get_logger()

MAX_OWED: Final = 10_000
"""Sessions that are owed without an append that waits; those beyond it are found again by whoever reads them."""
PAUSE_SECONDS: Final = 0.1
"""Between rounds while too few replicas answer."""
_TOO_FEW: Final = "too few replicas have it"
_IS_TOO_FEW: Final = "NOREPLICAS"
"""The server's own `min-replicas-to-write` says the same."""


class Seen(NamedTuple):
    """`head` may be seen. `live`: a gateway has the session, and heard of it."""

    head: int
    live: bool


@dataclass(slots=True)
class _Owed:
    """A stretch of one session's log, up to `seq`."""

    ref: SessionRef
    line: bytes
    seq: int = 0
    waiting: "list[asyncio.Future[Seen]]" = field(default_factory=list)


class Reveals:
    """One per gateway. `run` for ever. `appends` as the store's; `waits` carries nothing but rounds."""

    def __init__(
        self, appends: Router, waits: Router, scripts: StoreScripts, settings: AppendSettings, measures: Measures
    ) -> None:
        self._appends = appends
        self._waits = waits
        self._scripts = scripts
        self._replicas = settings.min_replicas
        self._wait_ms = round(settings.replica_wait_seconds * 1000)
        self._measures = measures
        self._owed: dict[tuple[bytes, bytes], _Owed] = {}
        self._called = asyncio.Event()
        self._busy: set[str] = set()
        """Servers whose round is under way, or was in vain a moment ago."""
        self._short: dict[str, SessionRef] = {}
        """Servers (by incarnation) whose last round had too few replicas; with a session of theirs, to ask again."""

    # ---- for the stores ----------------------------------------------------------------------------------------

    def check(self, session: SessionRef) -> None:
        """Before an append: where the last round had too few replicas nothing more is written. Raises Unreplicated."""
        if not self._short:
            return
        server = self._appends.of(session_keys(session).meta).incarnation
        if server in self._short:
            self._short[server] = session  # the next round is about one that is wanted, and whose slot may be well
            raise Unreplicated(_TOO_FEW, outcome_unknown=False)

    async def seen(self, session: SessionRef, answer: bytes, head_at: int, live_at: int | None = None) -> bytes:
        """A script's answer once what it wrote may be seen, with the head and `live` of that moment.

        `head_at`: its line with the told head (lib_visible.lua), behind that of the log. Raises StoreUnavailable.
        """
        lines = answer.split(b"\n")
        seq = _last(lines[head_at])
        if seq is None:
            return answer
        owed = self._owe(session, lines[head_at - 1], seq)
        future: asyncio.Future[Seen] = asyncio.get_running_loop().create_future()
        owed.waiting.append(future)
        try:
            head, is_live = await future
        finally:
            del future  # a cycle otherwise: its error would name this frame, which names it
        lines[head_at] = b"%d" % head
        if live_at is not None:
            lines[live_at] = b"1" if is_live else b"0"
        return b"\n".join(lines)

    def noticed(self, session: SessionRef, state: LogState | None) -> None:
        """Somebody has read the session: what is held may have been left by a gateway that died."""
        if state is not None and state.held and len(self._owed) < MAX_OWED:
            self._owe(session, state.line, state.head + state.held)

    def noticed_heads(
        self, sessions: Sequence[SessionRef], found: Sequence[Reply | StoreUnavailable], line_at: int
    ) -> None:
        """The same where only lines of text are answered: the log's line at `line_at`, behind it the told head."""
        for session, answer in zip(sessions, found, strict=True):
            if isinstance(answer, StoreUnavailable):
                continue
            line, told_head = answer.split(b"\n")[line_at : line_at + 2]
            seq = _last(told_head)
            if seq is not None and len(self._owed) < MAX_OWED:
                self._owe(session, line, seq)

    def look_at(self, session: SessionRef) -> None:
        """A refused call may have released messages of others."""
        meta = session_keys(session).meta
        endpoint = self._appends.of(meta)
        asked = endpoint.evaluate(self._scripts.heads, (meta,), (endpoint.incarnation,), repeats=True)
        asked.add_done_callback(partial(self._looked, session))

    def _looked(self, session: SessionRef, asked: "asyncio.Future[Reply]") -> None:
        if not asked.cancelled() and asked.exception() is None:
            self.noticed_heads((session,), (asked.result(),), line_at=0)

    def _owe(self, session: SessionRef, line: bytes, seq: int) -> _Owed:
        self._called.set()
        return self._owed_of(session, line, seq)

    def _owed_of(self, session: SessionRef, line: bytes, seq: int) -> _Owed:
        key = (session.key, line)
        owed = self._owed.get(key)
        if owed is None:
            owed = self._owed[key] = _Owed(session, line)
        owed.seq = max(owed.seq, seq)
        return owed

    # ---- rounds ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Rounds of several servers (a cluster) do not wait for each other."""
        while True:
            await self._called.wait()
            self._called.clear()
            due: dict[str, list[_Owed]] = {}
            servers: dict[str, Endpoint] = {}
            for key, owed in list(self._owed.items()):
                endpoint = self._waits.of(session_keys(owed.ref).meta)
                servers[endpoint.incarnation] = endpoint
                if endpoint.incarnation not in self._busy:
                    due.setdefault(endpoint.incarnation, []).append(self._owed.pop(key))
            for session in self._short.values():
                endpoint = self._waits.of(session_keys(session).meta)
                servers[endpoint.incarnation] = endpoint
            self._short = {server: session for server, session in self._short.items() if server in servers}
            for server in {*due, *self._short} - self._busy:
                self._begin_round(servers[server], due.get(server, []))

    def _begin_round(self, endpoint: Endpoint, due: list[_Owed]) -> None:
        """Whether enough replicas have everything that this server had written until now."""
        server = endpoint.incarnation
        self._busy.add(server)
        session = due[0].ref if due else self._short[server]
        mark = session_keys(session).meta[: -len("meta")] + b"mark"
        # In one turn, so in this order on one connection; a mark that failed makes the count worthless.
        marked = endpoint.evaluate(self._scripts.mark, (mark,), (), repeats=False)
        counted = endpoint.call("WAIT", self._replicas, self._wait_ms)
        began = time.monotonic()  # uvloop's own clock counts whole milliseconds
        both = asyncio.gather(marked, counted, return_exceptions=True)
        both.add_done_callback(lambda _: self._end_round(server, session, due, began, marked, counted))

    def _end_round(
        self,
        server: str,
        session: SessionRef,
        due: list[_Owed],
        began: float,
        marked: "asyncio.Future[Reply]",
        counted: "asyncio.Future[Reply]",
    ) -> None:
        error = _error_of(marked) or _error_of(counted)
        is_refused = isinstance(error, ReplyError) and error.code == _IS_TOO_FEW
        cause: StoreUnavailable | None = None
        outcome = "ok"
        if error is not None and not is_refused:
            outcome, cause = "failed", StoreUnavailable(error.reason, outcome_unknown=True)
        elif is_refused or int(counted.result()) < self._replicas:
            outcome, cause = "short", Unreplicated(_TOO_FEW, outcome_unknown=True)
            if server not in self._short:
                self._short[server] = session
                log.warning("replicas_too_few", wanted=self._replicas)
        self._measures.replica_waits[outcome] += 1
        self._measures.replica_wait_seconds.observe(time.monotonic() - began)
        if cause is not None:
            # The mark was in one session's slot, and that may be all that is wrong: another one's next time.
            self._put_back([*due[1:], *due[:1]], cause)
            asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._may_go_on, server)
            return
        if self._short.pop(server, None) is not None:
            log.info("replicas_enough")
        for owed in due:
            self._reveal(server, owed)
        self._may_go_on(server)

    def _may_go_on(self, server: str) -> None:
        self._busy.discard(server)
        if self._owed or self._short:
            self._called.set()

    def _reveal(self, server: str, owed: _Owed) -> None:
        keys = session_keys(owed.ref)
        endpoint = self._appends.of(keys.meta)
        if endpoint.incarnation != server:
            self._put_back((owed,), StoreUnavailable("another server answers", outcome_unknown=True))
            return
        asked = endpoint.evaluate(
            self._scripts.reveal,
            (keys.meta, keys.log, keys.gws, keys.kept),
            (server, owed.line, owed.seq),
            repeats=True,
        )
        asked.add_done_callback(partial(self._revealed, owed))

    def _revealed(self, owed: _Owed, asked: "asyncio.Future[Reply]") -> None:
        error = _error_of(asked)
        if error is not None:
            self._put_back((owed,), StoreUnavailable(error.reason, outcome_unknown=True))
            return
        answer = asked.result()
        if answer == b"m":
            # Whoever appended asks again and hears what became of it; nobody else waits for this stretch any more.
            _fail(owed, StoreUnavailable("the log goes on elsewhere", outcome_unknown=True))
            return
        _, head, is_live = answer.split(b"\n")
        seen = Seen(int(head.split(b" ")[0]), is_live == b"1")
        for future in owed.waiting:
            if not future.done():
                future.set_result(seen)

    def _put_back(self, due: Iterable[_Owed], error: StoreUnavailable) -> None:
        """Those who wait hear of it now; what they wrote stays owed."""
        for owed in due:
            _fail(owed, error)
            if len(self._owed) < MAX_OWED:
                self._owed_of(owed.ref, owed.line, owed.seq)
        asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._called.set)


def _last(told_head: bytes) -> int | None:
    """The seq of the last message that is held; None: none is."""
    head, _, held = told_head.partition(b" ")
    return int(head) + int(held) if held else None


def _error_of(asked: "asyncio.Future[Reply]") -> StoreUnavailable | None:
    if asked.cancelled():
        return StoreUnavailable("closed", outcome_unknown=True)
    error = asked.exception()
    if error is not None and not isinstance(error, StoreUnavailable):
        raise error
    return error


def _fail(owed: _Owed, error: StoreUnavailable) -> None:
    waiting, owed.waiting = owed.waiting, []
    for future in waiting:
        if not future.done():
            future.set_exception(error)
            future.exception()  # seen, also when its caller was cancelled


__all__ = ["MAX_OWED", "PAUSE_SECONDS", "Reveals", "Seen"]
