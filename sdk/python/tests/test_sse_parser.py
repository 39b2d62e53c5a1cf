"""The parser of server-sent events: however the bytes are cut, the same events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from relayrouter import sse
from relayrouter.errors import ProtocolError
from relayrouter.sse import SseEvent, SseParser

REFERENCE = (
    "\ufeff: a comment\n"
    "data: one\ndata: two\n\n"
    "id: e.f.1\ndata:no space\n\n"
    "event: gap\ndata: 🙂‍↕️ é\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e end\n\n"
    "data\n\n"
    "nonsense\nretry: 100\n: ping\n\n"
    "id: bad\x00id\ndata:  two spaces\n\n"
    "data: never finished\n"
)
EVENTS = [
    SseEvent("message", "one\ntwo", ""),
    SseEvent("message", "no space", "e.f.1"),
    SseEvent("gap", "🙂‍↕️ é\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e end", "e.f.1"),
    SseEvent("message", "", "e.f.1"),
    SseEvent("message", " two spaces", "e.f.1"),
]


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
def test_any_two_parts_and_single_bytes_give_the_same_events(line_end: str) -> None:
    """All splits of the reference in all line endings (S05), and no other line breaks (S06)."""
    data = REFERENCE.replace("\n", line_end).encode()
    splits = [[data[:at], data[at:]] for at in range(len(data) + 1)] + [[data[at : at + 1] for at in range(len(data))]]
    for parts in splits:
        parser = SseParser()
        assert [event for part in parts for event in parser.feed(part)] == EVENTS


@given(st.lists(st.text(max_size=30), max_size=6), st.integers(1, 9))
def test_any_text_comes_through(texts: list[str], step: int) -> None:
    """One line of it at a time, in any cut."""
    lines = [text.replace("\r", " ").replace("\n", " ") for text in texts]
    data = "".join(f"data: {line}\n\n" for line in lines).encode("utf-8", "replace")
    parser = SseParser()
    found = [event.data for at in range(0, len(data), step) for event in parser.feed(data[at : at + step])]

    assert found == [line.encode("utf-8", "replace").decode() for line in lines]


@pytest.mark.parametrize("extra", [0, 1])
def test_an_event_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch, extra: int) -> None:
    """At the limit it is waited for, one byte more and it is none of ours."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    parser = SseParser()
    parser.feed(b"data: " + b"x" * 94)
    if extra:
        with pytest.raises(ProtocolError):
            parser.feed(b"x")
    else:
        assert len(parser.feed(b"\n\n")) == 1
