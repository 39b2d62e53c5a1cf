"""Appends that wait for their turn or are kept for later (AppendRequest.order, kept_ms): the script `offer`.

Called by RedisStore; everything else about appending is there.
"""

from gateway.adapters.redis_store.entering import entering
from gateway.adapters.redis_store.exchange_answers import read_offer
from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.redis_store.keys import absent_key, session_keys
from gateway.adapters.redis_store.reveals import Reveals
from gateway.adapters.redis_store.scripts import StoreScripts
from gateway.adapters.resp import Router
from gateway.domain.wire.frames import payload_head
from gateway.ports import AppendOutcome, AppendRefusal, AppendRefused, AppendRequest, Order

_ORDERS = {None: "", Order.CONTIGUOUS: "c", Order.REORDER: "r"}

Argument = bytes | str | int


class Offers:
    """One per gateway, on the connection of its appends."""

    def __init__(
        self, client: Router, scripts: ExchangeScripts, log_scripts: StoreScripts, reveals: Reveals | None = None
    ) -> None:
        self._client = client
        self._script = scripts.offer
        self._enter = log_scripts.enter
        self._reveals = reveals

    async def offer(self, request: AppendRequest, code: str = "") -> AppendOutcome:
        """With `code` the numbers are consumed as refused."""
        name, epoch, registers = request.producer
        reveals = self._reveals
        if reveals is not None:
            reveals.check(request.session)
        arguments: list[Argument] = [
            payload_head(request.session.session),
            name,
            epoch,
            request.first_number,
            "r" if registers else "",
            _ORDERS[request.order],
            request.kept_ms or 0,
            "" if request.due_ms is None else request.due_ms,
            request.owner or "",
            request.idempotency_key or "",
            code,
            len(request.items),
        ]
        if not code:
            for item in request.items:
                counted = f"{item.cls}+{item.tail_bytes}" if item.counts_text else item.cls
                arguments += (counted, item.run, item.text_bytes, item.body)
        keys = session_keys(request.session)
        wanted = (*keys.of_append, keys.kept, keys.pending, absent_key(request.session))
        answer, state = await entering(
            lambda endpoint: endpoint.evaluate(self._script, wanted, (endpoint.incarnation, *arguments), repeats=False),
            self._client,
            self._enter,
            keys,
            request.owner,
            may_make=registers,
        )
        if answer is not None:
            if reveals is not None and answer[:1] == b"a":
                answer = await reveals.seen(request.session, answer, head_at=2, live_at=3)
            elif reveals is not None:
                reveals.look_at(request.session)
            return read_offer(answer)
        return AppendRefused(AppendRefusal.GONE if state == b"deleted" else AppendRefusal.PRODUCER_UNKNOWN)


__all__ = ["Offers"]
