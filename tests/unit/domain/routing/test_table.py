"""The table itself: what is shipped, which row a message takes, when two tables are the same."""

from dataclasses import replace

import pytest

from gateway.domain.routing.rules import faults_of
from gateway.domain.routing.table import ANY, SHIPPED, Backoff, Lane, MessageType, Retry, RouteTable
from tests.unit.domain.routing.located import shipped, table_of


def test_the_shipped_table_is_the_one_that_was_promised() -> None:
    told = {
        kind.value: (
            route.lane.value, route.channel.value, route.fallback and route.fallback.value, route.retry.attempts,
            route.is_durable, route.degrade.value,
        )
        for (kind, _), route in SHIPPED.items()
    }  # fmt: skip

    assert {
        "control": ("highest", "ws", None, 1, False, "none"),
        "user_text": ("high", "ws", "http", 2, True, "none"),
        "model_text": ("high", "ws", "http", 3, True, "coalesce"),
        "media": ("medium", "ws", None, 1, False, "audio_only"),
        "post_processing": ("low", "webhook", "queue", 8, True, "none"),
    } == told
    assert Backoff.EXPONENTIAL is SHIPPED[MessageType.POST_PROCESSING, ANY].retry.backoff


@pytest.mark.parametrize("key", SHIPPED, ids=lambda key: key[0].value)
def test_the_shipped_table_keeps_its_own_rules(key: tuple[MessageType, str]) -> None:
    assert [] == list(faults_of(*key, SHIPPED[key]))


def test_a_kind_takes_its_own_row_and_all_others_that_of_any_kind() -> None:
    table = table_of("control: {'*': {lane: low}, typing: {lane: medium}}")

    assert Lane.MEDIUM is table.route(MessageType.CONTROL, "typing").lane
    assert Lane.LOW is table.route(MessageType.CONTROL, "other").lane
    assert (MessageType.CONTROL, "typing") == table.row_of(MessageType.CONTROL, "typing")
    assert (MessageType.CONTROL, ANY) == table.row_of(MessageType.CONTROL, "other")


def test_a_table_without_a_row_for_a_type_cannot_be() -> None:
    rows = {key: route for key, route in SHIPPED.items() if key[0] is not MessageType.MEDIA}

    with pytest.raises(ValueError, match="no row for media"):
        RouteTable(rows)


def test_tables_have_one_digest_when_they_decide_alike_and_another_when_not() -> None:
    one = shipped(name="a")
    other = shipped({(MessageType.CONTROL, ANY): replace(SHIPPED[MessageType.CONTROL, ANY], lane=Lane.LOW)}, "a")

    assert one.digest == shipped(name="b").digest
    assert one.digest != other.digest
    assert one.digest == RouteTable(SHIPPED).name


def test_which_kinds_are_copied_is_known_beforehand() -> None:
    none, some = shipped(), table_of("model_text: {summary: {channel: queue}}")
    all_but_one = table_of("model_text: {'*': {channel: queue}, secret: {channel: ws}}")

    assert (False, frozenset()) == (none.copies, none.copied_kinds)
    assert (True, {"summary"}, False) == (some.copies, some.copied_kinds, some.copies_others)
    assert (True, frozenset(), True) == (all_but_one.copies, all_but_one.copied_kinds, all_but_one.copies_others)


def test_clients_are_told_channels_only_when_they_are_not_the_usual_ones() -> None:
    assert None is shipped().hint()
    assert None is table_of("model_text: {summary: {channel: queue}}, control: {'*': {lane: low}}").hint()
    told = table_of("user_text: {'*': {channel: http, retry: {attempts: 4}}}").hint()
    assert told is not None
    assert {"channel": "http", "fallback": None, "attempts": 4} == told["user_text"]


def test_pauses_double_up_to_their_bound_or_stay_what_they_are() -> None:
    growing = Retry(9, initial_seconds=1, max_seconds=5)
    fixed = Retry(9, Backoff.FIXED, 2)

    assert [1, 2, 4, 5, 5] == [growing.pause_seconds(attempt, 1) for attempt in range(1, 6)]
    assert 2.5 == growing.pause_seconds(99, 0.5)
    assert [2, 2] == [fixed.pause_seconds(attempt, 0.1) for attempt in (1, 9)]
