"""The scripts of deadlines, order, exchange and inbox, beside those of the log and its routes (scripts.py)."""

from typing import NamedTuple, Self

from gateway.adapters.redis_store.scripts import load
from gateway.adapters.resp import Script
from gateway.settings import (
    AskSettings,
    InboxSettings,
    KeptSettings,
    OrderSettings,
    OutboxSettings,
)

ABSENT_MS = 60_000
"""An entry of the index is kept so long when nothing of its session is due: three times the life of a note."""
ANSWERS_MAX_BYTES = 32_768
"""What a producer's results may take in its record before those beyond the window go: 512 of them far apart fit."""
WAITER_MS = 60_000
"""A gateway is told of the next deposit if it comes in that time; it takes again before."""


class ExchangeScripts(NamedTuple):
    """All of them, for one configuration."""

    due_note: Script
    due_read: Script
    due_settle: Script
    deposit: Script
    take: Script
    ack: Script
    extend: Script
    bury: Script
    redrive: Script
    lag: Script
    offer: Script
    input: Script
    open_ask: Script
    ask: Script
    resolve_ask: Script
    sweep: Script
    stop_run: Script

    @classmethod
    def load(
        cls,
        log_constants: dict[str, int | bool],
        *,
        order: OrderSettings,
        kept: KeptSettings,
        asks: AskSettings,
        outbox: OutboxSettings,
        inbox: InboxSettings,
    ) -> Self:
        """`log_constants`: what the scripts of the log know (scripts.constants); these write to the same log."""
        values = log_constants | {
            "ABSENT_MS": ABSENT_MS,
            "ANSWERS_MAX_BYTES": ANSWERS_MAX_BYTES,
            "ACCEPT_LATE": order.accept_late,
            "ASKS_OPEN_MAX": asks.open,
            "ASKS_RESOLVED_MAX": asks.resolved,
            "ASK_RESOLVED_MS": _ms(asks.resolved_seconds),
            "INBOX_MAX_BYTES": inbox.max_bytes,
            "INBOX_MAX_DEAD": inbox.max_dead,
            "INBOX_MAX_DELIVERIES": inbox.max_deliveries,
            "INBOX_MAX_ITEMS": inbox.max_items,
            "KEPT_MAX_BYTES": kept.bytes,
            "KEPT_MAX_MESSAGES": kept.messages,
            "ORDER_MAX_BYTES": order.bytes,
            "ORDER_MAX_MESSAGES": order.messages,
            "ORDER_WINDOW_MS": order.window_ms,
            "OUTBOX_MAX_BYTES": outbox.bytes,
            "OUTBOX_MAX_ITEMS": outbox.items,
            "OUTBOX_RETRY_MS": _ms(outbox.retry_seconds),
            "WAITER_MS": WAITER_MS,
        }
        return cls(*(load(name, values) for name in cls._fields))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


__all__ = ["ExchangeScripts"]
