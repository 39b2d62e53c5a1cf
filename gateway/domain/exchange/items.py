"""Inbox items: what an agent gets, as JSON, each with a stable id by which consumers drop repeats (G12).

Every item is made here, but for those that a sweep makes in Redis (`expired`, `abandoned`), which look the same.
"""

from enum import StrEnum
from typing import Any

import msgspec

from gateway.domain.wire.ids import SessionRef

_encode = msgspec.json.Encoder().encode


class ItemKind(StrEnum):
    INPUT = "input"
    ANSWER = "answer"
    INTERRUPT = "interrupt"
    CANCEL = "cancel"
    VIEWERS = "viewers"
    """Nobody looks at a run any more, and its producer had asked to be told."""
    ABANDONED = "abandoned"
    EXPIRED = "expired"
    POST_PROCESSING = "post_processing"
    """A job that a producer pushed, or a copy of a message that the route table sends to agents; `type` says which."""


def input_item_id(session: SessionRef, client: str, number: int) -> str:
    first = "%61sk" if session.session == "ask" else _part(session.session)  # no session's inputs look like asks
    return f"{first}:{_part(client)}:{number}"


def ask_item_id(session: SessionRef, ask: str) -> str:
    """Of its answer or its expiry: there is only one of them."""
    return f"ask:{_part(session.session)}:{_part(ask)}"


def run_item_id(session: SessionRef, run: str, reason: str) -> str:
    return f"run:{_part(session.session)}:{_part(run)}:{reason}"


def _part(ident: str) -> str:
    """Nobody can choose ids of their own so that an item of somebody else passes for a repeat (G12)."""
    return ident.replace("%", "%25").replace(":", "%3A")


def encode_item(kind: ItemKind, item_id: str, session: SessionRef, timestamp_ms: int | None, **fields: Any) -> bytes:
    """A whole JSON object. `fields` (client, user, run, ask, seq, payload, traceparent) that are None are left out.

    Id and timestamp together tell repeats. Without a timestamp the id does it alone, and must never be given again.
    """
    head = {"id": item_id, "kind": kind.value, "tenant": session.tenant, "session": session.session}
    given = {name: value for name, value in fields.items() if value is not None}
    return _encode(head | given | ({} if timestamp_ms is None else {"timestamp": timestamp_ms}))


__all__ = ["ItemKind", "ask_item_id", "encode_item", "input_item_id", "run_item_id"]
