"""What the route table says about one inbox item: which receiver or the queue, how often, and until when.

Read when the item's turn comes, so that a table that changed holds for what waits, too. Called by webhooks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gateway.domain.exchange.items import ItemKind
from gateway.domain.routing.table import ANY, SHIPPED, MessageType, Retry, Route, RouteChannel, RouteTable
from gateway.domain.wire.ids import session_key
from gateway.settings import Receiver

TableFor = Callable[[str, bytes], RouteTable]
"""(tenant, session key) -> its table."""

_shipped = RouteTable(SHIPPED, "shipped")


def shipped_table(_tenant: str, _session_key: bytes) -> RouteTable:
    return _shipped


class _Kind(msgspec.Struct):
    kind: Any = None


class Head(msgspec.Struct):
    """What we read of an item; the receiver gets it byte for byte."""

    id: str
    kind: str
    session: str
    timestamp: int = 0
    traceparent: str | None = None
    type: str = ""
    payload: msgspec.Raw = msgspec.Raw()
    expires_at: int | None = None
    """Unix ms."""

    @property
    def once(self) -> tuple[str, int]:
        """The same for repeats only: an id may be given again when an ask's or a client's name begins anew."""
        return self.id, self.timestamp

    def is_late(self, wall_seconds: float) -> bool:
        return self.expires_at is not None and wall_seconds * 1000 >= self.expires_at


decode_head: Final = msgspec.json.Decoder(Head).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode


@dataclass(frozen=True, slots=True)
class Plan:
    """`receiver` None and not `is_for_queue`: nobody wants it; `is_refused`: then it must not be dropped silently."""

    version: str
    rank: int
    receiver: Receiver | None
    is_for_queue: bool
    falls_back: bool
    """To the queue, when the receiver does not take it."""
    attempts: int
    retry: Retry | None
    """None: as the settings of webhooks say."""
    is_refused: bool = False
    is_fallback: bool = False
    """It goes to the queue because no receiver wants its kind."""


def plan_for(tenant: str, head: Head, receivers: Sequence[Receiver], table_for: TableFor) -> Plan:
    table = table_for(tenant, session_key(tenant, head.session))
    route = table.route(*_place(head))
    receiver = next((one for one in receivers if tenant in one.tenants and head.kind in one.kinds), None)
    rank = route.lane.rank
    if route.channel is RouteChannel.QUEUE:
        return Plan(table.name, rank, None, True, False, 0, None)
    if route.channel is not RouteChannel.WEBHOOK:
        attempts = 0 if receiver is None else receiver.attempts
        return Plan(table.name, rank, receiver, False, False, attempts, None)
    return _by_webhook(table, route, receiver)


def _by_webhook(table: RouteTable, route: Route, receiver: Receiver | None) -> Plan:
    falls_back = route.fallback is RouteChannel.QUEUE
    if receiver is None:
        return Plan(
            table.name, route.lane.rank, None, falls_back, falls_back, 0, None,
            is_refused=not falls_back, is_fallback=falls_back,
        )  # fmt: skip
    return Plan(table.name, route.lane.rank, receiver, False, falls_back, route.retry.attempts, route.retry)


def _place(head: Head) -> tuple[MessageType, str]:
    if head.kind == ItemKind.INPUT:
        return MessageType.USER_TEXT, _payload_kind(head)
    if head.kind == ItemKind.POST_PROCESSING:
        known = head.type if head.type in _TYPES else MessageType.POST_PROCESSING
        return MessageType(known), _payload_kind(head)
    return MessageType.CONTROL, head.kind


_TYPES: Final = frozenset(MessageType)


def _payload_kind(head: Head) -> str:
    try:
        kind = _decode_kind(head.payload).kind
    except msgspec.DecodeError:
        return ANY  # no object, or none at all
    return kind if isinstance(kind, str) else ANY


__all__ = ["Head", "Plan", "TableFor", "decode_head", "plan_for", "shipped_table"]
