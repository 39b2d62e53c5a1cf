"""Input, asks, outbox and sweeps in Redis (ports.Exchange): one script a call, each call one attempt.

Its answers are read in exchange_answers.py. Must never name a server that the connection does not have.
"""

from collections.abc import Iterable, Sequence

from gateway.adapters.redis_store import exchange_answers as read
from gateway.adapters.redis_store.entering import entering
from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.redis_store.keys import SessionKeys, absent_key, session_keys
from gateway.adapters.redis_store.reveals import Reveals
from gateway.adapters.redis_store.scripts import StoreScripts
from gateway.adapters.resp import Reply, Router, Script
from gateway.domain.wire.frames import encode_json, payload_head
from gateway.domain.wire.ids import GatewayId, SessionRef, UserId
from gateway.ports import (
    Answer,
    AskId,
    AskInfo,
    AskRefusal,
    AskRefused,
    AskStatus,
    InputAccepted,
    InputRefusal,
    InputRefused,
    InputRequest,
    OpenAsk,
    OutboxItem,
    Resolved,
    StoreUnavailable,
    SweepResult,
)

Argument = bytes | str | int


class RedisExchange:
    """One per gateway."""

    def __init__(
        self, client: Router, scripts: ExchangeScripts, log_scripts: StoreScripts, reveals: Reveals | None = None
    ) -> None:
        self._client = client
        self._scripts = scripts
        self._enter = log_scripts.enter
        self._reveals = reveals

    async def accept_input(self, request: InputRequest) -> InputAccepted | InputRefused:
        keys = session_keys(request.session)
        arguments: list[Argument] = [
            request.client,
            request.number,
            request.digest,
            request.connection or "",
            request.generation,
            "" if request.due_ms is None else request.due_ms,
            request.item,
            request.echo_body,
        ]
        answer, _ = await self._write(
            self._scripts.input,
            request.session,
            (*_of_exchange(keys), keys.routes, absent_key(request.session)),
            arguments,
            request.user if request.may_create else None,
            may_make=request.may_create,
        )
        if answer is None:
            return InputRefused(InputRefusal.NOT_FOUND)
        if answer == b"l":
            raise StoreUnavailable("the client's route is lost, its gateway claims it again", outcome_unknown=False)
        return read.read_input(answer, request.number)

    async def open_ask(self, request: OpenAsk) -> AskInfo | AskRefused:
        arguments: list[Argument] = [
            *_names(request.session),
            request.ask,
            request.run or "",
            request.body,
            request.record,
            request.expires_in_ms,
            request.owner or "",
            "" if request.due_ms is None else request.due_ms,
        ]
        answer, _ = await self._write(
            self._scripts.open_ask,
            request.session,
            (*_of_exchange(session_keys(request.session)), absent_key(request.session)),
            arguments,
            request.owner,
            may_make=True,
        )
        return AskRefused(AskRefusal.GONE) if answer is None else read.read_ask(answer, request.ask)

    async def ask(
        self, session: SessionRef, ask: AskId, watcher: GatewayId | None = None, *, leaves: bool = False
    ) -> AskInfo | None:
        """An overdue one is resolved on the way: nobody is told that it is open when no answer counts any more."""
        info = await self._ask(session, ask, watcher, leaves=leaves)
        if info is not None and info.status is AskStatus.OPEN and info.expires_in_ms == 0:
            await self.sweep(session)
            info = await self._ask(session, ask, watcher, leaves=leaves)
        return info

    async def _ask(self, session: SessionRef, ask: AskId, watcher: GatewayId | None, *, leaves: bool) -> AskInfo | None:
        answer = await self._client.evaluate(
            self._scripts.ask, (session_keys(session).kept,), (ask, watcher or "", int(leaves)), repeats=True
        )
        return None if answer is None else read.read_asked(answer, ask)

    async def resolve_ask(self, answer: Answer) -> Resolved | AskRefused:
        arguments: list[Argument] = [
            *_names(answer.session),
            answer.ask,
            "a" if answer.status is AskStatus.ANSWERED else "c",
            answer.resolved_body,
            answer.item,
            "" if answer.due_ms is None else answer.due_ms,
        ]
        found, state = await self._write(
            self._scripts.resolve_ask,
            answer.session,
            (*_of_exchange(session_keys(answer.session)), absent_key(answer.session)),
            arguments,
            None,
            may_make=False,
        )
        if found is None:
            return AskRefused(AskRefusal.GONE if state == b"deleted" else AskRefusal.NOT_FOUND)
        info = read.read_ask(found, answer.ask)
        return info if isinstance(info, AskRefused) else Resolved(info.is_new, info)

    async def outbox(self, session: SessionRef, limit: int) -> list[OutboxItem]:
        found = await self._client.call("XRANGE", session_keys(session).outbox, "-", "+", "COUNT", limit)
        return [OutboxItem(entry.decode(), fields[3]) for entry, fields in found]

    async def relayed(self, session: SessionRef, entries: Sequence[str]) -> None:
        if entries:
            await self._client.call("XDEL", session_keys(session).outbox, *entries)

    async def sweep(self, session: SessionRef) -> SweepResult:
        keys = (*_of_exchange(session_keys(session)), absent_key(session))
        names = _names(session)
        answer, _ = await self._write(self._scripts.sweep, session, keys, names, None, may_make=False)
        return read.NOT_FOUND if answer is None else read.read_swept(answer)

    async def _write(
        self,
        script: Script,
        session: SessionRef,
        keys: Sequence[bytes],
        arguments: Iterable[Argument],
        owner: UserId | None,
        *,
        may_make: bool,
    ) -> tuple[Reply, bytes]:
        """The script's answer and `live`, or None and why there is no session to write to."""
        rest = (payload_head(session.session), *arguments)
        if self._reveals is not None:
            self._reveals.check(session)
        answer, state = await entering(
            lambda endpoint: endpoint.evaluate(script, keys, (endpoint.incarnation, *rest), repeats=True),
            self._client,
            self._enter,
            session_keys(session),
            owner,
            may_make=may_make,
        )
        if self._reveals is not None and answer is not None:
            answer = await self._seen(self._reveals, session, answer)
        return answer, state

    async def _seen(self, reveals: Reveals, session: SessionRef, answer: Reply) -> Reply:
        """What every call may have written on its way, too: overdue messages of others."""
        if isinstance(answer, list) and answer[0][:1] == b"k":
            return [await reveals.seen(session, answer[0], head_at=6, live_at=7), *answer[1:]]
        if isinstance(answer, bytes) and answer[:1] in (b"a", b"=", b"s"):
            return await reveals.seen(session, answer, head_at=2)
        reveals.look_at(session)
        return answer


def _of_exchange(keys: SessionKeys) -> tuple[bytes, ...]:
    return keys.meta, keys.log, keys.gws, keys.clients, keys.kept, keys.pending, keys.outbox


def _names(session: SessionRef) -> tuple[Argument, ...]:
    """As the scripts put them into items that they make themselves."""
    names = b'"tenant":' + encode_json(session.tenant) + b',"session":' + encode_json(session.session)
    return session.session, names


__all__ = ["RedisExchange"]
