"""What the table says about an inbox item."""

from typing import Any

import msgspec
import pytest

from gateway.core.routing.plans import Plan, decode_head, plan_for
from gateway.domain.routing.table import RouteTable
from gateway.settings import Receiver
from tests.unit.domain.routing.located import shipped, table_of

HOOK = Receiver(name="h", url="https://agents.example/hook", secret="s" * 32, attempts=20)
DEAF = Receiver(name="d", url="https://agents.example/hook", secret="s" * 32, kinds=("viewers",))
BY_WEBHOOK = "{'*': {channel: webhook, fallback: queue, retry: {attempts: 3}}}"


def plan(table: RouteTable, kind: str = "input", *receivers: Receiver, **fields: Any) -> Plan:
    item = msgspec.json.encode({"id": "1", "kind": kind, "session": "s", **fields})
    return plan_for("default", decode_head(item), receivers or (HOOK,), lambda _tenant, _key: table)


def test_as_shipped_what_users_say_goes_as_the_settings_of_webhooks_say() -> None:
    it = plan(shipped(), payload={"kind": "message"})

    assert (HOOK, 20, None, False) == (it.receiver, it.attempts, it.retry, it.is_for_queue)


@pytest.mark.parametrize("kind", ["answer", "interrupt", "cancel", "viewers", "abandoned", "expired"])
def test_so_does_what_controls_and_sweeps_bring_until_it_is_routed(kind: str) -> None:
    routed = table_of(f"control: {{{kind}: {{channel: queue, persistence: durable}}}}")

    assert HOOK is plan(shipped(), kind).receiver
    assert plan(routed, kind).is_for_queue


def test_a_job_goes_by_webhook_as_often_as_its_row_says_and_then_to_the_queue() -> None:
    it = plan(table_of(f"post_processing: {BY_WEBHOOK}"), "post_processing", payload={"kind": "a"})

    assert (HOOK, 3, True) == (it.receiver, it.attempts, it.falls_back)
    assert it.retry is not None


def test_a_copy_takes_the_row_of_its_own_type() -> None:
    table = table_of(
        f"model_text: {{note: {{channel: webhook, retry: {{attempts: 5}}}}}}, post_processing: {BY_WEBHOOK}"
    )

    assert 5 == plan(table, "post_processing", type="model_text", payload={"kind": "note"}).attempts
    assert 3 == plan(table, "post_processing", type="nonsense", payload={"kind": "note"}).attempts


def test_what_no_receiver_wants_goes_to_the_queue_or_is_refused_but_never_dropped_by_a_webhook_row() -> None:
    back = plan(table_of(f"user_text: {BY_WEBHOOK}"), "input", DEAF, payload={})
    alone = plan(table_of("user_text: {'*': {channel: webhook}}"), "input", DEAF, payload={})
    usual = plan(shipped(), "input", DEAF, payload={})

    assert (True, True, False) == (back.is_for_queue, back.is_fallback, back.is_refused)
    assert (False, True) == (alone.is_for_queue, alone.is_refused)
    assert (None, False, False) == (usual.receiver, usual.is_for_queue, usual.is_refused)


@pytest.mark.parametrize("payload", [None, [], "text", {"kind": 5}, {}])
def test_a_payload_without_a_kind_takes_the_row_for_all_kinds(payload: Any) -> None:
    table = table_of("user_text: {'*': {channel: queue}, note: {channel: ws}}")

    assert plan(table, "input", payload=payload).is_for_queue
    assert not plan(table, "input", payload={"kind": "note"}).is_for_queue
