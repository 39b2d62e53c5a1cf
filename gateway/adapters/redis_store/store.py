"""The log, its producers and its routes in Redis: one script a call (ports.LogStore). Each call is one attempt.

Must never name a server that the connection does not have: each call carries the client's incarnation of that moment.
"""

import secrets
from collections.abc import Callable, Sequence
from typing import Final

from gateway.adapters.redis_store import answers
from gateway.adapters.redis_store.all_answers import each_answer
from gateway.adapters.redis_store.keys import SessionKeys, absent_key, session_keys, text_keys
from gateway.adapters.redis_store.offers import Offers
from gateway.adapters.redis_store.reveals import Reveals
from gateway.adapters.redis_store.scripts import StoreScripts
from gateway.adapters.resp import Endpoint, Router
from gateway.domain.sessions.log_state import LogState
from gateway.domain.wire.frames import payload_head
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, ProducerName, SessionRef, UserId
from gateway.ports import (
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    AppendRequest,
    Claimed,
    ClaimOutcome,
    ClaimRequest,
    HeadInfo,
    Page,
    Registered,
    RenewClient,
    Renewed,
    RenewRequest,
    SessionInfo,
    StoreUnavailable,
)

_ATTEMPTS: Final = 3
"""Of a call that finds its session missing or on another server, with an `enter` between."""

Argument = bytes | str | int


def _nonces() -> str:
    """Ten characters for an epoch and eight for a fork, in case one begins."""
    return secrets.token_hex(9)  # one draw: every claim and renewal brings them


class RedisStore:
    """`appends` carries what writes the log and routes, `reads` what may be large, so that no append waits behind it.

    `nonces` makes 18 random characters 0-9 a-z for every call. `offers` takes what has an order or is kept.
    """

    def __init__(
        self,
        appends: Router,
        reads: Router,
        scripts: StoreScripts,
        *,
        replay_page_bytes: int,
        nonces: Callable[[], str] = _nonces,
        offers: Offers | None = None,
        reveals: Reveals | None = None,
    ) -> None:
        """`reveals`: where appends wait for replicas."""
        self._appends = appends
        self._reads = reads
        self._scripts = scripts
        self._page_bytes = replay_page_bytes
        self._nonces = nonces
        self._offers = offers
        self._reveals = reveals

    # ---- the log ----

    async def append(self, request: AppendRequest) -> AppendOutcome:
        if self._offers is not None and (request.order is not None or request.kept_ms is not None):
            return await self._offers.offer(request)
        head = payload_head(request.session.session)
        messages: list[Argument] = []
        for cls, run, text_bytes, counts_text, body, tail_bytes in request.items:
            messages += (f"{cls}+{tail_bytes}" if counts_text else cls, run, text_bytes, head + body)
        return await self._append(request, "", messages)

    async def consume_numbers(self, request: AppendRequest, code: str) -> AppendOutcome:
        if self._offers is not None and request.order is not None:
            return await self._offers.offer(request, code)
        return await self._append(request, code, [])

    async def _append(self, request: AppendRequest, code: str, messages: list[Argument]) -> AppendOutcome:
        """`code`: the numbers are consumed as refused with it."""
        name, epoch, registers = request.producer
        keys = session_keys(request.session)
        reveals = self._reveals
        if reveals is not None:
            reveals.check(request.session)
        options, extra = _options(request, code)
        arguments = [f"p:{name}", epoch, request.first_number, options, *extra, *messages]
        wanted = (*keys.of_append, *_text_keys(request))
        for _ in range(_ATTEMPTS):
            endpoint = self._appends.of(keys.meta)
            answer = await endpoint.evaluate(
                self._scripts.append, wanted, [endpoint.incarnation, *arguments], repeats=False
            )
            if answer != b"m":
                if reveals is not None and answer[:1] == b"a":
                    answer = await reveals.seen(request.session, answer, head_at=2, live_at=3)
                return answers.read_append(answer, len(request.items))
            entered = await self._enter(self._appends, keys, request.owner, may_make=registers)
            if entered.state == b"deleted":
                return AppendRefused(AppendRefusal.GONE)
            if entered.state == b"missing":
                return AppendRefused(AppendRefusal.PRODUCER_UNKNOWN)
        raise StoreUnavailable("the session comes and goes", outcome_unknown=False)

    async def register_producer(
        self, session: SessionRef, name: ProducerName, owner: UserId | None
    ) -> Registered | AppendRefused:
        keys = session_keys(session)
        entered = await self._enter(self._appends, keys, owner, may_make=True, producer=f"p:{name}")
        if entered.producer_epoch is None:
            return AppendRefused(AppendRefusal.GONE)
        return Registered(entered.producer_epoch, entered.line)

    async def _enter(
        self, router: Router, keys: SessionKeys, owner: UserId | None, *, may_make: bool, producer: str = ""
    ) -> answers.Entered:
        endpoint = router.of(keys.meta)
        arguments = [endpoint.incarnation, self._nonces(), owner or "", "1" if may_make else "", producer]
        answer = await endpoint.evaluate(self._scripts.enter, keys.of_log, arguments, repeats=True)
        entered = answers.read_entered(answer)
        _note(endpoint, entered.server)
        return entered

    async def page(self, session: SessionRef, after_seq: int, max_bytes: int) -> Page | None:
        """A log that another server wrote gets its fork first, so that the page's log shows what was lost."""
        keys = session_keys(session)
        for _ in range(_ATTEMPTS):
            endpoint = self._reads.of(keys.meta)
            arguments: list[Argument] = [endpoint.incarnation, after_seq, max_bytes]
            answer = await endpoint.evaluate(self._scripts.page, (keys.meta, keys.log), arguments, repeats=True)
            if answer[0] != b"s":
                page = answers.read_page(answer)
                self._notice(session, None if page is None else page.log)
                return page
            await self._enter(self._reads, keys, None, may_make=False)
        raise StoreUnavailable("the session moves between servers", outcome_unknown=False)

    async def heads(self, sessions: Sequence[SessionRef]) -> list[HeadInfo | StoreUnavailable]:
        calls = []
        for session in sessions:
            meta = session_keys(session).meta
            endpoint = self._reads.of(meta)
            calls.append(endpoint.evaluate(self._scripts.heads, (meta,), [endpoint.incarnation], repeats=True))
        found = await each_answer(calls)
        if self._reveals is not None:
            self._reveals.noticed_heads(sessions, found, line_at=0)
        return [answer if isinstance(answer, StoreUnavailable) else answers.read_head(answer) for answer in found]

    async def info(self, session: SessionRef) -> SessionInfo | None:
        keys = session_keys(session)
        wanted = (keys.meta, keys.log, keys.clients, keys.routes)
        info = answers.read_info(await self._reads.evaluate(self._scripts.info, wanted, [], repeats=True))
        self._notice(session, None if info is None else info.log)
        return info

    def _notice(self, session: SessionRef, state: LogState | None) -> None:
        if self._reveals is not None:
            self._reveals.noticed(session, state)

    async def delete(self, session: SessionRef) -> bool:
        meta, *others, gws = session_keys(session)
        keys = (meta, gws, *others, absent_key(session))
        answer = await self._appends.evaluate(self._scripts.delete, keys, [], repeats=True)
        return bool(answer)

    # ---- routes ----

    async def claim(self, request: ClaimRequest) -> ClaimOutcome:
        keys, cursor = session_keys(request.session), request.cursor
        endpoint = self._reads.of(keys.meta)
        seq = cursor.seq if cursor is not None else request.bare_seq
        arguments: list[Argument] = [
            endpoint.incarnation,
            self._nonces(),
            request.gateway,
            request.connection,
            request.client,
            request.user,
            "1" if request.may_create else "",
            b"" if cursor is None else cursor.line,
            "" if seq is None else seq,
            "start" if request.from_start else "live",
            request.replaces or "",
            "" if request.reclaims is None else request.reclaims,
            str(request.capabilities),
            request.retry_count,
            self._page_bytes,
        ]
        answer = await endpoint.evaluate(self._scripts.claim, keys, arguments, repeats=True)
        outcome, server = answers.read_claim(answer)
        _note(endpoint, server)
        self._notice(request.session, outcome.log if isinstance(outcome, Claimed) else None)
        return outcome

    async def settle(self, session: SessionRef, client: ClientId, connection: ConnectionId, generation: int) -> bool:
        keys = session_keys(session)
        answer = await self._appends.evaluate(
            self._scripts.settle, (keys.meta, keys.routes, keys.gws), [client, connection, generation], repeats=True
        )
        return bool(answer)

    async def renew(self, requests: Sequence[RenewRequest]) -> list[Renewed | StoreUnavailable]:
        calls, endpoints = [], []
        for request in requests:
            keys = session_keys(request.session)
            endpoint = self._appends.of(keys.meta)
            endpoints.append(endpoint)
            arguments: list[Argument] = [endpoint.incarnation, self._nonces(), request.gateway]
            for known in request.clients:
                arguments += (
                    known.client,
                    known.connection,
                    known.generation,
                    known.line,
                    _acked(known),
                    known.quality,
                )
            wanted = (keys.meta, keys.clients, keys.routes, keys.gws)
            calls.append(endpoint.evaluate(self._scripts.renew, wanted, arguments, repeats=True))
        results: list[Renewed | StoreUnavailable] = []
        found = await each_answer(calls)
        if self._reveals is not None:
            self._reveals.noticed_heads([request.session for request in requests], found, line_at=1)
        for request, endpoint, answer in zip(requests, endpoints, found, strict=True):
            if isinstance(answer, StoreUnavailable):
                results.append(answer)
                continue
            renewed, server = answers.read_renewed(answer, [known.generation for known in request.clients])
            _note(endpoint, server)
            results.append(renewed)
        return results

    async def release(self, session: SessionRef, gateway: GatewayId, client: RenewClient, *, was_live: bool) -> None:
        keys = session_keys(session)
        arguments: list[Argument] = [
            gateway,
            client.client,
            client.connection,
            client.generation,
            client.line,
            _acked(client),
            "1" if was_live else "",
        ]
        wanted = (keys.meta, keys.clients, keys.routes, keys.gws)
        await self._appends.evaluate(self._scripts.release, wanted, arguments, repeats=True)


def _options(request: AppendRequest, code: str) -> tuple[str, list[Argument]]:
    """As append.lua takes them."""
    options, progress = "", request.progress
    extra: list[Argument] = []
    if progress is not None:
        options = "s"
        extra += (progress.run, progress.input_offset, (progress.gateway or "").encode() + b"\n" + progress.state)
        if progress.expected_offset is not None:
            options = "sc"
            extra.append(progress.expected_offset)
    if request.producer.registers:
        options += "r"
    if request.owner is not None or request.idempotency_key is not None or request.due_ms is not None or code:
        options += "x"
        due = "" if request.due_ms is None else request.due_ms
        extra += (request.owner or "", request.idempotency_key or "", code, len(request.items) if code else 0, due)
    return options, extra


def _text_keys(request: AppendRequest) -> list[bytes]:
    keys: list[bytes] = []
    known = ""
    for item in request.items:
        if item.run and item.run != known:
            known = item.run
            keys += text_keys(request.session, known)
    return keys


def _acked(client: RenewClient) -> Argument:
    return "" if client.acked_seq is None else client.acked_seq


def _note(endpoint: Endpoint, server: bytes) -> None:
    """The server says that it is another one than the call named."""
    if server:
        endpoint.incarnation = server.decode()


__all__ = ["RedisStore"]
