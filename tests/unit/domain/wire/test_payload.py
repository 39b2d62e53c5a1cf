"""Payloads: canonical form, limits, what is mended and what is refused."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.wire.entry import EntryClass, Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.payload import MAX_DEPTH, decode_json, make_item

ANY = msgspec.json.Decoder(dict[str, Any])


def refusal(payload: Any, max_bytes: int = 65_536) -> RelayError:
    with pytest.raises(RelayError) as caught:
        make_item(payload, max_bytes)
    return caught.value


@pytest.mark.parametrize(("kind", "cls"), [("delta", EntryClass.DELTA), ("thinking", EntryClass.THINKING)])
@pytest.mark.parametrize("order", [("kind", "run", "text"), ("text", "run", "kind"), ("at", "text", "kind", "run")])
def test_text_of_a_run_is_canonical_whatever_the_order_and_at_is_dropped(
    kind: str, cls: EntryClass, order: tuple[str, ...]
) -> None:
    fields = {"kind": kind, "run": "r1", "text": "héllo", "at": 99}

    item = make_item({name: fields[name] for name in order})

    assert item == Item(cls, "r1", 6, True, f'{{"kind":"{kind}","run":"r1","text":"héllo"'.encode(), 7)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {"kind": "delta", "run": "r", "text": "é", "lang": "fr", "at": 7},
            Item(EntryClass.OTHER, "r", 2, True, '{"kind":"delta","run":"r","lang":"fr","text":"é"'.encode(), 3),
        ),
        (
            {"text": "x = 1", "kind": "code_block", "run": "r", "language": "py"},
            Item(EntryClass.CODE, "r", 5, True, b'{"kind":"code_block","run":"r","language":"py","text":"x = 1"', 6),
        ),
        (
            {"kind": "thinking", "run": "r", "duration_ms": 5},
            Item(EntryClass.OTHER, "r", 0, False, b'{"kind":"thinking","run":"r","duration_ms":5'),
        ),
        (
            {"kind": "thinking", "run": "r", "text": "hm", "duration_ms": 5},
            Item(EntryClass.OTHER, "r", 0, False, b'{"kind":"thinking","run":"r","text":"hm","duration_ms":5'),
        ),
        (
            {"kind": "run_start", "run": "r"},
            Item(EntryClass.RUN_START, "r", 0, False, b'{"kind":"run_start","run":"r"'),
        ),
        (
            {"kind": "run_end", "run": "r", "reason": "complete"},
            Item(EntryClass.RUN_END, "r", 0, False, b'{"kind":"run_end","run":"r","reason":"complete"'),
        ),
        (
            {"kind": "tool", "run": "r", "data": {"a": [1, 2.5, None, True]}},
            Item(EntryClass.TOOL, "r", 0, False, b'{"kind":"tool","run":"r","data":{"a":[1,2.5,null,true]}'),
        ),
        (
            {"kind": "data", "run": 7, "at": 3, "text": "t"},
            Item(EntryClass.OTHER, "", 0, False, b'{"kind":"data","run":7,"at":3,"text":"t"'),
        ),
        ({"kind": "delta", "text": "x"}, Item(EntryClass.OTHER, "", 0, False, b'{"kind":"delta","text":"x"')),
        ({"kind": "mine"}, Item(EntryClass.OTHER, "", 0, False, b'{"kind":"mine"')),
    ],
)
def test_each_kind_becomes_its_item(payload: dict[str, Any], expected: Item) -> None:
    assert make_item(payload) == expected


@pytest.mark.parametrize(
    ("payload", "names"),
    [
        ({}, "payload.kind"),
        ({"kind": 5}, "payload.kind"),
        ({"kind": ""}, "payload.kind"),
        ({"kind": "k" * 65}, "payload.kind"),
        ({"kind": "a\x00"}, "payload.kind"),
        ({"kind": "delta", "run": "r"}, "payload.text"),
        ({"kind": "delta", "run": "r", "text": 5}, "payload.text"),
        ({"kind": "delta", "run": "r", "text": None}, "payload.text"),
        ({"kind": "code_block", "run": "r"}, "payload.text"),
        ({"kind": "delta", "run": "", "text": "x"}, "payload.run"),
        ({"kind": "delta", "run": "r" * 129, "text": "x"}, "payload.run"),
        ({"kind": "delta", "run": "a\nb", "text": "x"}, "payload.run"),
        ({"kind": "delta", "run": 5, "text": "x"}, "payload.run"),
        ({"kind": "run_start"}, "payload.run"),
        ({"kind": "run_end", "run": None}, "payload.run"),
        ({"kind": "data", "n": 2**53}, "2^53"),
        ({"kind": "data", "n": [-(2**53)]}, "2^53"),
        ({"kind": "data", "n": 10**400}, "2^53"),
        ({"kind": "data", "n": float("nan")}, "JSON does not have"),
        ({"kind": "data", "n": {"m": float("inf")}}, "JSON does not have"),
        ({"kind": "data", "n": {1: 2}}, "not a string"),
        ({"kind": "data", "n": object()}, "JSON does not have"),
    ],
)
def test_what_is_wrong_is_named(payload: dict[str, Any], names: str) -> None:
    error = refusal(payload)

    assert error.code is ErrorCode.BAD_REQUEST
    assert names in error.message


@pytest.mark.parametrize("number", [2**53 - 1, -(2**53) + 1, 0, 1.5, 1e300])
def test_numbers_that_every_client_reads_alike_pass(number: float) -> None:
    item = make_item({"kind": "data", "n": number})

    assert json.loads(item.body + b"}")["n"] == number


@pytest.mark.parametrize(
    "make", [lambda text: {"kind": "delta", "run": "r", "text": text}, lambda text: {"kind": "data", "text": text}]
)
@pytest.mark.parametrize(("excess", "is_accepted"), [(-1, True), (0, True), (1, False)])
def test_a_message_has_at_most_64_kib_with_its_closing_brace(make: Any, excess: int, is_accepted: bool) -> None:
    rest = len(make_item(make("")).body) + 1
    payload = make("x" * (65_536 - rest + excess))

    if is_accepted:
        assert len(make_item(payload).body) + 1 == 65_536 + excess
    else:
        error = refusal(payload)
        assert (error.code, error.details) == (ErrorCode.TOO_LARGE, {"limit_bytes": 65_536})


def test_the_limit_counts_bytes_after_escaping() -> None:
    assert refusal({"kind": "delta", "run": "r", "text": "\x01" * 20}, max_bytes=100).code is ErrorCode.TOO_LARGE


@pytest.mark.parametrize(("depth", "is_accepted"), [(MAX_DEPTH - 1, True), (MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}])
def test_nesting_is_bounded(depth: int, is_accepted: bool, wrap: Any) -> None:
    value: Any = 1
    for _ in range(depth - 2):  # the payload is one level, the number another
        value = wrap(value)
    payload = {"kind": "data", "v": value}

    if is_accepted:
        make_item(payload)
    else:
        assert "nested" in refusal(payload).message


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    assert "nested" in refusal({"kind": "data", "v": loop}).message


@pytest.mark.parametrize("escaped", [b"\\ud83d", b"\\ude00", b"\\ude00\\ud83d", b"a\\ud83dz", b"\\uD83D"])
@pytest.mark.parametrize(
    "template",
    [
        b'{"kind":"delta","run":"r","text":"%s"}',
        b'{"kind":"delta","run":"r","text":"x","%s":1}',
        b'{"kind":"data","d":[{"k":"%s"}]}',
        b'{"kind":"delta","run":"r-%s","text":"x"}',
    ],
)
def test_a_lone_surrogate_becomes_the_replacement_character(escaped: bytes, template: bytes) -> None:
    """Failure catalogue A12."""
    item = make_item(decode_json(template % escaped, ANY))

    text = item.body.decode()
    assert "\ufffd" in text
    assert item.text_bytes == len(json.loads(text + "}").get("text", "").encode()) or not item.counts_text


def test_a_pair_of_surrogates_is_one_character() -> None:
    item = make_item(decode_json(b'{"kind":"delta","run":"r","text":"\\ud83d\\ude00"}', ANY))

    assert item.body.endswith('"😀"'.encode())
    assert item.text_bytes == 4


def test_surrogates_in_strings_of_our_own_are_mended_too() -> None:
    assert make_item({"kind": "delta", "run": "r", "text": "a\ud800"}).body.endswith('"a\ufffd"'.encode())
    assert make_item({"kind": "data", "k\udc00": "v"}).body == '{"kind":"data","k\ufffd":"v"'.encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"a":"\xed\xa0\x80"}',
        b"NaN",
        b'{"a":NaN}',
        b'{"a":NaN,"b":"\\ud800"}',
        b'{"a":Infinity,"b":"\\ud800"}',
        b'{"a":1e999}',
        b'{"a":"\\ud800"',
        b'{"a":"\\ud800" x}',
        b"[1]",
        b'["\\ud800"]',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"b":"\\ud800","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"b":"\\ud800","a":' + b"9" * 10_000 + b"}",
    ],
    ids=range(16),
)
def test_what_is_no_json_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(RelayError) as caught:
        decode_json(body, ANY)

    assert caught.value.code is ErrorCode.BAD_REQUEST
    assert len(caught.value.message) < 300


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(kind=st.sampled_from(["data", "tool", "delta", "code_block", "x"]), fields=st.dictionaries(st.text(), JSON))
def test_what_is_accepted_says_what_was_sent(kind: str, fields: dict[str, Any]) -> None:
    payload = {**fields, "kind": kind, "run": "r", "text": "tëxt"}

    item = make_item(payload)

    said = json.loads(item.body + b"}")
    if item.counts_text:
        payload.pop("at", None)
    assert said == json.loads(json.dumps(payload))
    assert next(iter(said)) == "kind"


@given(st.sampled_from(["delta", "thinking", "code_block"]), st.text(), st.booleans())
def test_the_tail_of_a_body_is_its_text(kind: str, text: str, has_more: bool) -> None:
    """What the append script cuts off for the run's kept text."""
    payload = {"kind": kind, "text": text, "run": "r"} | ({"z": 1} if has_more and kind != "thinking" else {})

    item = make_item(payload)

    assert item.counts_text
    escaped = item.body[-item.tail_bytes : -1]
    assert json.loads(b'"' + escaped + b'"').encode() == json.loads(item.body + b"}")["text"].encode()
    assert item.text_bytes == len(json.loads(item.body + b"}")["text"].encode())
    assert item.body[-item.tail_bytes - 1 :].startswith(b'"')
