"""The send queue: batches within their limits, numbers that belong to one message for ever."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from relayrouter import producer_queue as module
from relayrouter.producer_queue import Entry, SendQueue


def queue_of(*bodies: bytes, expires_in: float | None = None) -> SendQueue:
    queue = SendQueue()
    for body in bodies:
        queue.add(Entry(body, expires_in, None))
    return queue


def bodies_of(queue: SendQueue) -> list[bytes]:
    return [entry.body for entry in queue.next_batch().entries]


def test_a_batch_is_the_json_that_the_gateway_reads() -> None:
    batch = queue_of(b'{"kind":"note"}', b'{"kind":"data"}', expires_in=60).next_batch()

    assert json.loads(batch.encode("p", 3, "u1")) == {
        "producer": "p",
        "epoch": 3,
        "number": 1,
        "expires_in": 60,
        "owner": "u1",
        "messages": [{"payload": {"kind": "note"}}, {"payload": {"kind": "data"}}],
    }


@pytest.mark.parametrize(("limit", "count"), [(3 * 116, 3), (3 * 116 - 1, 2), (1, 1)])
def test_a_batch_ends_at_its_bytes(limit: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", limit)

    assert len(bodies_of(queue_of(*[b"x" * 100] * 10))) == count


@pytest.mark.parametrize(("messages", "count"), [(127, 127), (128, 128), (129, 128)])
def test_a_batch_ends_at_its_items(messages: int, count: int) -> None:
    assert len(bodies_of(queue_of(*[b"x"] * messages))) == count


def test_a_push_that_fits_into_one_request_goes_in_one() -> None:
    """It waits for the next one rather than being cut."""
    queue = SendQueue()
    for number in range(100):
        queue.add(Entry(b"a", None, "first", number == 99))
    for number in range(100):
        queue.add(Entry(b"b", None, "second", number == 99))

    assert set(bodies_of(queue)) == {b"a"}


def test_messages_of_another_expiry_go_in_another_batch() -> None:
    queue = queue_of(b"1", b"2")
    queue.add(Entry(b"3", 60, None))

    assert bodies_of(queue) == [b"1", b"2"]


def test_only_the_last_acknowledged_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_ITEMS", 4)
    queue = queue_of(*[b"x"] * 10)
    queue.acknowledge(9)

    assert (queue.first_number, queue.next_number, queue.unsent_items) == (6, 10, 1)


def test_kept_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 35)
    queue = queue_of(*[b"x" * 10] * 10)
    queue.acknowledge(10)

    assert (queue.first_number, queue.unsent_bytes) == (8, 0)


def test_a_rewind_sends_the_same_bodies_under_the_same_numbers() -> None:
    queue = queue_of(b"1", b"2", b"3", b"4")
    queue.acknowledge(3)

    assert queue.rewind(2) == 2
    assert (queue.next_batch().first_number, bodies_of(queue)) == (2, [b"2", b"3", b"4"])
    assert queue.unsent_bytes == 3


def test_a_new_epoch_numbers_what_is_unacknowledged_from_one() -> None:
    queue = queue_of(b"1", b"2", b"3")
    queue.acknowledge(1)
    queue.renumber()
    queue.put_first(Entry(b"gap", None, None))

    assert (queue.next_batch().first_number, bodies_of(queue)) == (1, [b"gap", b"2", b"3"])


def test_what_one_sender_has_unsent_can_be_dropped() -> None:
    queue = queue_of(b"0")
    queue.add(Entry(b"1", None, "a"))
    queue.add(Entry(b"22", None, "b"))
    queue.renumber()
    queue.drop({"a"})

    assert (bodies_of(queue), queue.unsent_bytes) == ([b"0", b"22"], 3)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_a_number_always_means_the_same_message(steps: list[tuple[int, int, int]]) -> None:
    queue = SendQueue()
    added = 0
    for add, acknowledge, rewind in steps:
        for _ in range(add):
            added += 1
            queue.add(Entry(b"%d" % added, None, None))
        queue.acknowledge(min(acknowledge, queue.unsent_items))
        queue.rewind(max(queue.first_number, queue.next_number - rewind))

        assert [int(body) for body in bodies_of(queue)] == list(range(queue.next_number, added + 1))
        assert queue.unsent_bytes == sum(len(b"%d" % number) for number in range(queue.next_number, added + 1))
