"""Which row of which table a message takes: the answer that an operator gets. Pure."""

from gateway.domain.routing.book import RouteBook, Slot
from gateway.domain.routing.table import MessageType
from gateway.domain.wire.ids import session_key


def explain(
    book: RouteBook, tenant: str, session: str | None, message_type: MessageType, kind: str
) -> dict[str, object]:
    """Without a session: that of those which are not on trial."""
    key = None if session is None else session_key(tenant, session)
    table = book.main if key is None else book.table_for(tenant, key)
    slot = Slot.CURRENT if key is None else book.slot_for(tenant, key)
    row_type, row_kind = table.row_of(message_type, kind)
    return {
        "version": table.name,
        "digest": table.digest,
        "table": slot.value,
        "type": message_type.value,
        "kind": kind,
        "row": f"{row_type.value}.{row_kind}",
        "route": table.route(message_type, kind).cells(),
    }


__all__ = ["explain"]
