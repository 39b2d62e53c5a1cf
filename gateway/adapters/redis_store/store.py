"""The log, its producers and its routes in Redis: one script a call (ports.LogStore). Each call is one attempt.

Must never name a server that the connection does not have: each call carries the client's incarnation of that moment.
"""

import asyncio
import secrets
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from gateway.adapters.redis_store import answers
from gateway.adapters.redis_store.keys import append_keys, session_keys
from gateway.adapters.redis_store.scripts import StoreScripts
from gateway.adapters.resp import Client, Reply, Script
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

_MUST_ENTER: Final = b"m"
_ENTER_ATTEMPTS: Final = 3
_NONCE_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_encode = msgspec.json.Encoder().encode


def _nonces() -> str:
    """Ten characters for an epoch and eight for a fork, in case one is opened."""
    return "".join(secrets.choice(_NONCE_ALPHABET) for _ in range(18))


class RedisStore:
    """`appends` carries what writes, `reads` claims and what may be large: no append waits behind a page."""

    def __init__(self, appends: Client, reads: Client, scripts: StoreScripts, *, replay_page_bytes: int) -> None:
        self._appends = appends
        self._reads = reads
        self._scripts = scripts
        self._page_bytes = replay_page_bytes

    # ---- the log -----------------------------------------------------------------------------------------------

    async def append(self, request: AppendRequest) -> AppendOutcome:
        head = b',"session_id":' + _encode(request.session.session) + b',"payload":'
        items = chain.from_iterable(
            (item.cls + "+" if item.counts_text else item.cls, item.run, item.text_bytes, head + item.body)
            for item in request.items
        )
        special: tuple[str | int, ...] = ()
        if request.owner is not None or request.idempotency_key is not None:
            special = (request.owner or "", request.idempotency_key or "", "", 0)
        return await self._append(request, special, items)

    async def consume_numbers(self, request: AppendRequest, code: str) -> AppendOutcome:
        return await self._append(request, ("", "", code, len(request.items)), ())

    async def _append(self, request: AppendRequest, special: tuple[Any, ...], items: Any) -> AppendOutcome:
        producer = request.producer
        options = ("r" if producer.registers else "") + ("x" if special else "")
        arguments = [f"p:{producer.name}", producer.epoch, request.first_number, options, *special, *items]
        keys = append_keys(request.session)
        for _ in range(_ENTER_ATTEMPTS):
            answer = await self._appends.evaluate(
                self._scripts.append, keys, (self._appends.incarnation, *arguments), repeats=False
            )
            if answer != _MUST_ENTER:
                return answers.read_append(answer, len(request.items))
            refusal = await self._enter(request, keys)
            if refusal is not None:
                return AppendRefused(refusal)
        raise StoreUnavailable("the server changed its name with each call", outcome_unknown=False)

    async def _enter(self, request: AppendRequest, keys: tuple[bytes, ...]) -> AppendRefusal | None:
        may_make = "1" if request.producer.registers else ""
        arguments = (self._appends.incarnation, _nonces(), may_make, request.owner or "")
        status, report = await self._appends.evaluate(self._scripts.enter, keys, arguments, repeats=True)
        self._note(self._appends, report)
        if status == b"deleted":
            return AppendRefusal.GONE
        return AppendRefusal.PRODUCER_UNKNOWN if status == b"missing" else None

    async def register_producer(
        self, session: SessionRef, name: ProducerName, owner: UserId | None
    ) -> Registered | AppendRefused:
        arguments = (self._appends.incarnation, _nonces(), f"p:{name}", owner or "")
        status, report, *made = await self._appends.evaluate(
            self._scripts.register, append_keys(session), arguments, repeats=True
        )
        self._note(self._appends, report)
        if status == b"deleted":
            return AppendRefused(AppendRefusal.GONE)
        return Registered(int(made[0]), made[1])

    async def page(self, session: SessionRef, after_seq: int, max_bytes: int) -> Page | None:
        keys = session_keys(session)
        answer = await self._read(self._scripts.page, (keys.meta, keys.log), (after_seq, max_bytes))
        return answers.read_page(answer)

    async def heads(self, sessions: Sequence[SessionRef]) -> list[HeadInfo]:
        incarnation = self._reads.incarnation
        calls = [self._read(self._scripts.heads, (session_keys(ref).meta,), (incarnation,)) for ref in sessions]
        return [answers.read_head(answer) for answer in await _all(calls)]

    async def info(self, session: SessionRef) -> SessionInfo | None:
        keys = session_keys(session)
        return answers.read_info(await self._read(self._scripts.info, keys[:4], ()))

    async def delete(self, session: SessionRef) -> bool:
        keys = session_keys(session)
        return bool(await self._appends.evaluate(self._scripts.delete, keys, (), repeats=True) == 1)

    # ---- routes ------------------------------------------------------------------------------------------------

    async def claim(self, request: ClaimRequest) -> ClaimOutcome:
        keys = session_keys(request.session)
        cursor = request.cursor
        seq = cursor.seq if cursor is not None else request.bare_seq
        answer = await self._reads.evaluate(
            self._scripts.claim,
            keys[:7],
            (
                self._reads.incarnation,
                _nonces(),
                request.gateway,
                request.connection,
                request.client,
                "1" if request.may_create else "",
                request.user,
                cursor.line if cursor is not None else "",
                "" if seq is None else seq,
                "1" if request.from_start else "",
                request.replaces or "",
                "1" if request.is_reclaim else "",
                request.retry_count,
                self._page_bytes,
            ),
            repeats=True,
        )
        outcome = answers.read_claim(answer, cursor)
        if isinstance(outcome, Claimed):
            self._note(self._reads, answer[1])
        return outcome

    async def settle(self, session: SessionRef, client: ClientId, connection: ConnectionId, generation: int) -> bool:
        keys = session_keys(session)
        answer = await self._appends.evaluate(
            self._scripts.settle, (keys.meta, keys.routes), (client, connection, generation), repeats=True
        )
        return bool(answer == 1)

    async def renew(self, requests: Sequence[RenewRequest]) -> list[Renewed]:
        incarnation = self._appends.incarnation
        calls = []
        for request in requests:
            keys = session_keys(request.session)
            arguments: list[Any] = [incarnation, _nonces(), request.gateway]
            for client in request.clients:
                arguments += (client.client, client.connection, client.generation, client.line, _acked(client))
            calls.append(
                self._appends.evaluate(
                    self._scripts.renew,
                    (keys.meta, keys.routes, keys.clients, keys.gws, keys.runs),
                    arguments,
                    repeats=True,
                )
            )
        given = await _all(calls)
        for answer in given:
            self._note(self._appends, answer[0])
        return [answers.read_renewed(answer) for answer in given]

    async def release(self, session: SessionRef, gateway: GatewayId, client: RenewClient, *, was_live: bool) -> None:
        keys = session_keys(session)
        await self._appends.evaluate(
            self._scripts.release,
            (keys.meta, keys.routes, keys.clients, keys.gws),
            (
                gateway,
                client.client,
                client.connection,
                client.generation,
                client.line,
                _acked(client),
                "1" if was_live else "",
            ),
            repeats=True,
        )

    def _read(self, script: Script, keys: Sequence[bytes], arguments: Sequence[Any]) -> "asyncio.Future[Reply]":
        return self._reads.evaluate(script, keys, arguments, repeats=True)

    @staticmethod
    def _note(client: Client, report: bytes) -> None:
        """The server says that it is another one than the call named."""
        if report:
            client.incarnation = report.decode()


def _acked(client: RenewClient) -> str:
    return "" if client.acked_seq is None else f"{client.line.decode()}.{client.acked_seq}"


async def _all(calls: Sequence["asyncio.Future[Reply]"]) -> list[Any]:
    """Every answer, or the first failure once all have ended: none is left without somebody who reads it."""
    given = await asyncio.gather(*calls, return_exceptions=True)
    for answer in given:
        if isinstance(answer, BaseException):
            raise answer
    return list(given)


__all__ = ["RedisStore"]
