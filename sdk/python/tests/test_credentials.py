"""Tokens: fetched for every attempt, refused ones tried once more, and never shown (U02, U04)."""

import asyncio

import pytest
from relayrouter.credentials import Credentials, TokenUnavailable


class Source:
    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        token = self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
        if token == "!":
            raise ValueError("the secret is hunter2")
        return token


async def test_the_callback_is_asked_for_every_attempt() -> None:
    """A token is good for minutes, a session for days."""
    source = Source("t1", "t2")
    credentials = Credentials(source, 5.0)

    assert [await credentials.fetch(), await credentials.fetch()] == ["t1", "t2"]
    assert credentials.headers() == {"Authorization": "Bearer t2"}


async def test_a_plain_function_will_do() -> None:
    """Not every token comes over the network."""
    assert await Credentials(lambda: "t", 5.0).fetch() == "t"


async def test_a_failing_callback_says_nothing_of_what_it_said() -> None:
    """Its message may be a secret; the next call may do."""
    credentials = Credentials(Source("!", "t"), 5.0)
    with pytest.raises(TokenUnavailable) as caught:
        await credentials.fetch()

    assert "hunter2" not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value}"
    assert caught.value.retryable
    assert await credentials.fetch() == "t"


@pytest.mark.looptime
async def test_a_callback_that_hangs_is_given_up() -> None:
    """An attempt has its time."""

    async def never() -> str:
        await asyncio.Event().wait()
        return ""

    with pytest.raises(TokenUnavailable):
        await Credentials(never, 5.0).fetch()


async def test_a_plain_token_that_was_refused_is_refused_again() -> None:
    """Nobody will give another one."""
    credentials = Credentials("t", 5.0)
    await credentials.fetch()

    assert not credentials.may_try_again()


async def test_a_callback_gets_one_more_chance_in_a_row() -> None:
    """Then it is final, whatever it gives."""
    credentials = Credentials(Source("t1", "t2", "t3"), 5.0)
    await credentials.fetch()
    assert credentials.may_try_again()
    await credentials.fetch()
    assert not credentials.may_try_again()


async def test_the_same_token_is_tried_twice_at_most_however_long_it_was_good() -> None:
    """A welcome in between does not make it better."""
    credentials = Credentials(Source("t"), 5.0)
    await credentials.fetch()
    assert credentials.may_try_again()
    await credentials.fetch()
    credentials.accepted()
    assert not credentials.may_try_again()


async def test_a_new_token_that_was_accepted_may_expire_in_its_turn() -> None:
    """Each has its own two attempts."""
    credentials = Credentials(Source("t1", "t2", "t3", "t4"), 5.0)
    for _ in range(3):
        await credentials.fetch()
        assert credentials.may_try_again()
        await credentials.fetch()
        credentials.accepted()


async def test_a_token_out_of_a_file_is_without_its_line_break() -> None:
    """A header with a line break in it is none, and the attempt would fail for ever."""
    from_callback = Credentials(lambda: " abc\r\n", 1.0)
    await from_callback.fetch()

    assert Credentials("abc\n", 1.0).headers() == from_callback.headers() == {"Authorization": "Bearer abc"}


@pytest.mark.parametrize("source", ["se\ncret", "se\0cret", 7, b"secret"])
async def test_what_can_be_no_token_is_refused_at_once_and_not_shown(source: object) -> None:
    """Better than a session that waits for ever, or goes in as nobody."""
    with pytest.raises(ValueError, match="token") as caught:
        Credentials(source, 1.0)

    assert "cret" not in str(caught.value)


async def test_a_callback_that_gives_no_token_fails_its_attempt() -> None:
    """The next one may give one."""
    with pytest.raises(TokenUnavailable) as caught:
        await Credentials(lambda: "se\ncret", 1.0).fetch()

    assert "cret" not in str(caught.value)
