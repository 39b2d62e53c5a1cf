"""The input queue: in order, exactly once, bounded, and never silent about what failed."""

from typing import Any

import pytest
from relayrouter.errors import ClosedError, ConflictError, QueueFullError, RefusedError, RelayError, TooLargeError
from relayrouter.events import InputEvent
from relayrouter.input_queue import DEFAULT_LIMIT_BYTES, WINDOW, InputQueue
from relayrouter.store import SavedInput


class Kit:
    def __init__(self, items: int = 64, size: int = 1024 * 1024) -> None:
        self.events: list[InputEvent] = []
        self.queue = InputQueue(items, size, self.events.append)

    def add(self, *texts: str) -> None:
        for text in texts:
            self.queue.add({"text": text})

    def send(self, now: float = 0.0) -> list[tuple[int | None, str]]:
        due = self.queue.due(now)
        for entry in due:
            self.queue.sent(entry)
        return [(entry.seq, entry.payload["text"]) for entry in due]

    def refuse(self, seq: int, code: str, *, expected: int | None = None, **fields: Any) -> None:
        error = RelayError(code, code=code, retryable=fields.get("retryable", False))
        self.queue.refused(seq, error, expected, fields.get("after_ms"), fields.get("now", 0.0))

    def failed(self) -> list[tuple[str, type[Exception]]]:
        return [
            (event.payload["text"], type(event.error))
            for event in self.events
            if event.status == "failed" and event.error
        ]


def test_numbers_go_on_from_the_welcome() -> None:
    """Before it there are none, so nothing can go out."""
    kit = Kit()
    kit.add("a", "b")
    assert kit.send() == []
    kit.queue.welcome(4, None)

    assert kit.send() == [(5, "a"), (6, "b")]
    assert kit.send() == []


def test_a_new_channel_gets_everything_again_with_the_same_numbers() -> None:
    """A repeat is accepted once, whatever channel it comes by."""
    kit = Kit()
    kit.queue.welcome(0, None)
    kit.add("a", "b")
    kit.send()
    kit.queue.accepted(1)
    kit.queue.welcome(1, None)
    kit.add("c")

    assert kit.send() == [(2, "b"), (3, "c")]


def test_one_window_is_in_flight() -> None:
    """n, and the next one with the first acknowledgement."""
    kit = Kit()
    kit.queue.welcome(0, None)
    kit.add(*(str(n) for n in range(WINDOW + 1)))

    assert len(kit.send()) == WINDOW
    assert kit.send() == []
    kit.queue.accepted(1)
    assert kit.send() == [(WINDOW + 1, str(WINDOW))]


def test_a_full_queue_says_so_at_once() -> None:
    """By number, and by bytes."""
    kit = Kit(items=2)
    kit.add("a", "b")
    with pytest.raises(QueueFullError):
        kit.add("c")
    kit = Kit(size=len('{"text":"a"}') * 2)
    kit.add("a", "b")
    with pytest.raises(QueueFullError):
        kit.add("c")
    assert len(kit.queue) == 2


@pytest.mark.parametrize("limit", [None, 100])
def test_a_message_above_the_limit_fails_at_once(limit: int | None) -> None:
    """At the limit it is taken, one byte more and it is not."""
    kit = Kit()
    kit.queue.welcome(0, limit)
    room = (limit or DEFAULT_LIMIT_BYTES) - len('{"text":""}')
    kit.add("x" * room)
    with pytest.raises(TooLargeError):
        kit.add("x" * (room + 1))
    with pytest.raises(TooLargeError):
        kit.add("é" * (room // 2 + 1))


def test_a_limit_that_is_lower_than_thought_fails_what_is_above_it() -> None:
    """It would loop for ever otherwise."""
    kit = Kit()
    kit.add("x" * 200, "small")
    kit.queue.welcome(0, 100)

    assert kit.failed() == [("x" * 200, TooLargeError)]
    assert kit.send() == [(1, "small")]


def test_a_conflict_fails_its_own_and_the_numbers_go_on() -> None:
    """Somebody else used the number."""
    kit = Kit()
    kit.queue.welcome(0, None)
    kit.add("a")
    kit.send()
    kit.refuse(1, "conflict", expected=4)
    kit.add("b")

    assert kit.failed() == [("a", ConflictError)]
    assert kit.send() == [(4, "b")]


def test_a_server_that_forgot_names_what_it_expects() -> None:
    """Everything that is open gets new numbers, in order."""
    kit = Kit()
    kit.queue.welcome(7, None)
    kit.add("a", "b")
    kit.send()
    for seq in (8, 9):
        kit.refuse(seq, "expected", expected=1)

    assert kit.send(now=10.0) == [(1, "a"), (2, "b")]


def test_a_rate_limit_holds_all_back_and_keeps_the_order() -> None:
    """The later ones were refused for the first one's sake."""
    kit = Kit()
    kit.queue.welcome(0, None)
    kit.add("a", "b")
    kit.send()
    kit.refuse(1, "over_limit", retryable=True, after_ms=700, now=1.0)
    kit.refuse(2, "expected", expected=1, now=1.0)

    assert kit.send(now=1.6) == []
    assert kit.send(now=1.7) == [(1, "a"), (2, "b")]


def test_a_refusal_that_is_final_fails_and_its_number_is_used_by_the_next() -> None:
    """The server did not take the number."""
    kit = Kit()
    kit.queue.welcome(0, None)
    kit.add("a", "b")
    kit.send()
    kit.queue.refused(1, RefusedError("no", code="bad_request"), None, None, 0.0)

    assert kit.failed() == [("a", RefusedError)]
    assert kit.send() == [(1, "b")]


def test_the_biggest_in_flight_pays_for_a_close_1009() -> None:
    """And the others go on."""
    kit = Kit()
    kit.queue.welcome(0, None)
    kit.add("a", "bbbb", "c")
    kit.send()
    kit.queue.drop_biggest(TooLargeError("too big"))
    kit.queue.welcome(1, None)

    assert kit.failed() == [("bbbb", TooLargeError)]
    assert kit.send() == [(1, "a"), (2, "c")]


def test_another_life_sends_what_was_saved_with_its_numbers() -> None:
    """Saved before it was sent: the server knows which of them it has."""
    first = Kit()
    first.queue.welcome(0, None)
    first.add("a", "b")
    first.send()
    first.add("c")
    second = Kit()
    second.queue.restore(first.queue.saved())
    second.queue.welcome(1, None)

    assert first.queue.saved()[2] == SavedInput(None, {"text": "c"})
    assert second.send() == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize(("is_kept", "left"), [(True, 1), (False, 0)])
async def test_an_end_tells_who_waits(is_kept: bool, left: int) -> None:
    """What is stored stays for the next life."""
    import asyncio

    kit = Kit()
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    kit.queue.add({"text": "a"}, answer)
    kit.queue.close(ClosedError("closed"), is_kept=is_kept)

    assert isinstance(answer.exception(), ClosedError)
    assert len(kit.queue) == left
    assert len(kit.failed()) == 1 - left
