"""The examples of docs/hooks.md."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.hooks import DirectionTag, TitleOnResume, WordFilter
from gateway.domain.wire.ids import ClientId, RunId, SessionId, Tenant, UserId
from gateway.ports import Track
from gateway.ports.hooks import DeliveredMessage, ResumedClient, RunContext

CONTEXT = RunContext(Tenant("t"), SessionId("s"), RunId("r"), Track.TEXT)
WORDS = WordFilter(["darn", "heck"])


def filtered(chunks: list[str]) -> str:
    """Through a filter that moves to another gateway after every chunk."""
    out, state = "", b""
    for chunk in chunks:
        opened = WORDS.open_filter(CONTEXT, state)
        out += opened.feed(chunk)
        state = opened.save()
    return out + WORDS.open_filter(CONTEXT, state).flush()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what the heck, darn!", "what the ****, ****!"),
        ("Heck.", "****."),
        ("hecklers and darning", "hecklers and darning"),
        ("a_darn darn_b", "a_darn darn_b"),
        ("x" * 40 + "darn darn", "x" * 40 + "darn ****"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_words_are_starred_however_the_text_is_split(text: str, expected: str, size: int) -> None:
    chunks = [text[i : i + size] for i in range(0, len(text), size)]

    assert expected == filtered(chunks)


@given(st.lists(st.sampled_from(["darn", "heck", " ", "x", "_", "dar", "n", "y" * 33, "."])), st.integers(0, 2**32))
def test_splitting_changes_nothing(parts: list[str], seed: int) -> None:
    text, rng = "".join(parts), random.Random(seed)
    cuts = sorted(rng.randint(0, len(text)) for _ in range(5))

    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert filtered([text]) == filtered(chunks)


def test_words_that_could_not_be_held_are_refused() -> None:
    with pytest.raises(ValueError, match="letters only"):
        WordFilter(["two words"])


def test_only_messages_from_right_to_left_are_tagged() -> None:
    def message(frame: str) -> DeliveredMessage:
        return DeliveredMessage(Tenant("t"), SessionId("s"), 1, frame.encode())

    tag = DirectionTag()

    assert {"dir": "rtl"} == tag.fields(message('{"text":"שלום"}'))
    assert tag.fields(message('{"text":"hello"}')) is None


async def test_a_title_comes_along() -> None:
    hook = TitleOnResume({"s": "Plans"})
    client = ResumedClient(Tenant("t"), SessionId("s"), ClientId("c"), UserId("u"), "full", "e.f.3")

    assert await hook.on_resume(client) == {"title": "Plans"}
    assert await hook.on_resume(client._replace(session=SessionId("other"))) is None
