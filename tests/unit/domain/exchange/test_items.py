"""Inbox items: their shape, and ids that are the same for each repeat."""

import json

from gateway.domain.exchange.items import ItemKind, ask_item_id, encode_item, input_item_id, run_item_id
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant

REF = SessionRef(Tenant("acme"), SessionId("chat: 1"))


def test_an_item_names_what_it_is_and_leaves_out_what_there_is_not() -> None:
    item = encode_item(ItemKind.INPUT, "id", REF, 17, client="c", user=None, payload={"text": None})

    assert json.loads(item) == {
        "id": "id",
        "kind": "input",
        "tenant": "acme",
        "session": "chat: 1",
        "client": "c",
        "payload": {"text": None},
        "timestamp": 17,
    }


def test_ids_are_made_of_what_stays_the_same() -> None:
    ref = SessionRef(Tenant("acme"), SessionId("chat-1"))

    assert ("chat-1:c:3", "ask:chat-1:a1", "run:chat-1:r7:cancelled") == (
        input_item_id(ref, "c", 3),
        ask_item_id(ref, "a1"),
        run_item_id(ref, "r7", "cancelled"),
    )


def test_nobody_can_choose_names_so_that_an_item_of_somebody_else_passes_for_a_repeat() -> None:
    def ref(session: str) -> SessionRef:
        return SessionRef(Tenant("acme"), SessionId(session))

    ids = [
        input_item_id(ref("a:b"), "c", 1),
        input_item_id(ref("a"), "b:c", 1),
        input_item_id(ref("a%3Ab"), "c", 1),
        input_item_id(ref("ask"), "a", 1),
        ask_item_id(ref("a"), "1"),
        input_item_id(ref("%61sk"), "a", 1),
        ask_item_id(ref("a:b"), "c"),
        ask_item_id(ref("a"), "b:c"),
        run_item_id(ref("a"), "b:c", "cancelled"),
        run_item_id(ref("a:b"), "c", "cancelled"),
    ]

    assert len(ids) == len(set(ids))
