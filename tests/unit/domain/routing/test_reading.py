"""A file becomes tables whole or not at all, and every mistake is told with its line."""

import re
import string
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.config.route_file import MAX_BYTES, BadRoutes, parse_routes
from gateway.domain.routing.book import RouteFile
from gateway.domain.routing.reading import MAX_ATTEMPTS, MAX_ROWS
from gateway.domain.routing.table import ANY, COLUMNS, SHIPPED, Backoff, MessageType, Retry, RouteChannel
from tests.unit.domain.routing.located import file_of, problems_of, table_of

FAULTS = {
    "channel: fax": "model_text.*.channel: one of ws, sse, http, webhook, queue, not 'fax'",
    "lane: 1": "model_text.*.lane: one of highest, high, medium, low, not 1",
    "persistence: ephemeral": "model_text.*: persistence of text cannot be switched off",
    "persistence: off": "model_text.*.persistence: one of durable, ephemeral, not False",
    "degrade: audio_only": "model_text.*: model_text degrades by coalesce or none, not by audio_only",
    "deadline_seconds: 5": "model_text.*: text stays in the log and has no deadline; only what goes to agents",
    "deadline_seconds: 0": "model_text.*.deadline_seconds: a number of seconds above 0, at most 604800",
    "deadline_seconds: .nan": "model_text.*.deadline_seconds: a number of seconds above 0, at most 604800",
    "fallback: queue": "model_text.*: behind ws comes http, none or sse, not queue",
    "retry: 3": "model_text.*.retry must be a mapping of attempts, backoff, initial_seconds, max_seconds",
    "retry: {backoff: fixed}": "model_text.*.retry: `attempts` is missing; `retry: none` is one attempt",
    "retry: {attempts: 0}": f"model_text.*.retry.attempts: 1 to {MAX_ATTEMPTS}, the first one counted",
    "retry: {attempts: true}": f"model_text.*.retry.attempts: 1 to {MAX_ATTEMPTS}, the first one counted",
    "retry: {attempts: 2, max_seconds: 0.1}": "model_text.*.retry.max_seconds is below initial_seconds",
    "priority: high": f"model_text.*: unknown key `priority`; there are {', '.join(COLUMNS)}",
}


@pytest.mark.parametrize(("cell", "message"), FAULTS.items(), ids=FAULTS)
def test_each_mistake_in_a_cell_is_told_with_its_line(cell: str, message: str) -> None:
    text = f"# a comment\nroutes:\n  model_text:\n    '*':\n      {cell}\n"

    assert [(5, message)] == problems_of(text)


def test_all_mistakes_are_told_together_in_the_order_of_their_lines() -> None:
    text = """
version: "no spaces"
routes:
  control:
    typing: {lane: fast}
  media:
    "*":
      degrade: none
      lane: high
    audio: {}
canary:
  share: 120%
  tenants: [1, ok]
  routes: {}
nonsense: 1
"""

    assert [2, 5, 8, 9, 10, 11, 12, 13, 15] == [line for line, _ in problems_of(text)]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "is empty"),
        ("# nothing\n", 1, "is empty"),
        ("a: [", 1, "not valid YAML"),
        ("version: v1\nroutes: {control: {}\n", 3, "not valid YAML"),
        ("- list", 1, "the file must be a mapping"),
        ("version: v1", 1, "`routes` is missing"),
        ("routes:\n  control: 5\n", 2, "control must be a mapping"),
        ("routes: {}\nroutes: {}\n", 2, "`routes` is written twice, first in line 1"),
        ("routes:\n  control:\n    typing: {}\n    typing: {}\n", 4, "`typing` is written twice"),
        ("routes: {}\ncanary: {share: 10%, routes: {}}\n", 2, "there is nothing to try"),
        ("routes: {}\ncanary: {routes: {control: {a: {lane: low}}}}\n", 2, "needs `share` or `tenants`"),
        ("version: x\nroutes: {}\ncanary: {version: x, share: 1, routes: {control: {a: {lane: low}}}}", 3, "differ"),
        ("routes:\n  control:\n    welcome: {}\n", 3, "is the protocol's own"),
        ("routes:\n  model_text:\n    delta: {channel: queue}\n", 3, "delta goes to people"),
        ("routes: {control: {a: {channel: queue}}}", 1, "is kept until it is taken"),
        ("routes: {post_processing: {a: {persistence: ephemeral}}}", 1, "persistence must be durable"),
        ("routes: {media: {'*': {persistence: durable}}}", 1, "media is never kept"),
        ("routes: {media: {'*': {retry: {attempts: 2}}}}", 1, "media is not sent again"),
        ("routes: {control: {answer: {deadline_seconds: 1}}}", 1, "is promised to the agent"),
        ("routes: {user_text: {'*': {persistence: ephemeral}}}", 1, "persistence of text cannot be switched off"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_told(text: str, line: int, words: str) -> None:
    problems = problems_of(text)

    assert [(line, True)] == [(at, words in message) for at, message in problems], problems


def test_what_is_not_said_is_as_shipped_and_a_kind_stands_on_the_row_for_all_kinds() -> None:
    table = table_of("user_text: {note: {lane: low}, '*': {retry: {attempts: 7, backoff: fixed}}}")
    row = table.route(MessageType.USER_TEXT, "note")

    assert Retry(7, Backoff.FIXED) == row.retry
    assert RouteChannel.HTTP is row.fallback
    assert SHIPPED[MessageType.MEDIA, ANY] == table.route(MessageType.MEDIA, "video")


def test_another_channel_comes_without_the_fallback_of_the_one_before() -> None:
    assert None is table_of("user_text: {'*': {channel: queue}}").route(MessageType.USER_TEXT, ANY).fallback


def test_a_canary_says_only_what_it_tries() -> None:
    found = file_of(
        "version: v7\nroutes: {control: {'*': {lane: low}}}\n"
        "canary: {version: v8, share: 10%, tenants: [acme], routes: {media: {'*': {degrade: thin}}}}\n"
    )

    assert found.canary is not None
    assert ("v7", "v8", 0.1, {"acme"}) == (
        found.current.name, found.canary.table.name, found.canary.share, found.canary.tenants,
    )  # fmt: skip
    assert "low" == found.canary.table.route(MessageType.CONTROL, ANY).lane
    assert ("audio_only", "thin") == (
        found.current.route(MessageType.MEDIA, ANY).degrade,
        found.canary.table.route(MessageType.MEDIA, ANY).degrade,
    )


@pytest.mark.parametrize(("written", "share"), [("10%", 0.1), ("0.1", 0.1), ("1", 1.0), ("0", 0.0), ("'2.5 %'", 0.025)])
def test_a_share_is_a_number_or_a_percentage(written: str, share: float) -> None:
    found = file_of(f"routes: {{}}\ncanary: {{share: {written}, routes: {{control: {{a: {{lane: low}}}}}}}}\n")

    assert found.canary is not None
    assert share == found.canary.share


@pytest.mark.parametrize(("count", "is_right"), [(MAX_ROWS - 1, True), (MAX_ROWS, True), (MAX_ROWS + 1, False)])
def test_rows_are_bounded(count: int, is_right: bool) -> None:
    rows = "".join(f"    k{number}: {{lane: low}}\n" for number in range(count))

    assert is_right == (not problems_of(f"routes:\n  control:\n{rows}"))


@pytest.mark.parametrize(("size", "is_right"), [(MAX_BYTES - 1, True), (MAX_BYTES, True), (MAX_BYTES + 1, False)])
def test_a_file_is_bounded(size: int, is_right: bool) -> None:
    text = "routes: {}\n"

    assert is_right == (not problems_of(text + "#" * (size - len(text))))


def test_aliases_do_not_make_a_small_file_large() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 40)}]" for n in range(1, 7)]

    problems = problems_of("\n".join(lines))

    assert any("too many values" in message for _, message in problems)
    assert len(problems) < 20


WORDS = st.sampled_from(
    ["routes", "canary", "version", "share", "control", "media", "user_text", "model_text", "'*'", "lane", "channel",
     "retry", "attempts", "low", "queue", "webhook", "durable", "none", "10%", "1", ":", " ", "\n", "  ", "{", "}", ",",
     "[", "]", "&a ", "*a", "- ", "'", '"', "\t", "!!int ", "|\n", "<<"]
)  # fmt: skip


@pytest.mark.parametrize(
    "value", ["!!int ''", "!!int x", "!!float ''", "2001-13-01", "!!binary '*'", "!!bool x", "!x y"]
)
def test_a_value_that_yaml_itself_cannot_read_is_told_with_its_line(value: str) -> None:
    problems = problems_of(f"routes: {{}}\nversion: {value}\n")

    assert [2] == [line for line, _ in problems]


def test_an_alias_of_itself_ends() -> None:
    problems = problems_of("routes: &a\n  control: *a\n")

    assert (2, "is nested too deep, or has too many values") in problems


@given(st.lists(WORDS | st.text(string.printable, max_size=3), max_size=60).map("".join))
def test_whatever_is_written_gives_a_table_or_lines(text: str) -> None:
    problems, breaks = problems_of(text), len(re.findall("[\n\r]", text))

    assert all(1 <= line <= breaks + 2 and message for line, message in problems)


@given(st.binary(max_size=60))
def test_whatever_bytes_are_in_the_file_they_are_judged(data: bytes) -> None:
    with suppress(BadRoutes):
        assert isinstance(parse_routes(data, "r"), RouteFile)
