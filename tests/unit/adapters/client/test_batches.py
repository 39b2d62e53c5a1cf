"""The send queue: batches within their limits, numbers that belong to one message for ever."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.client.batches import SendQueue
from gateway.adapters.client.settings import PublisherSettings


def queue_of(*bodies: bytes, **limits: int) -> SendQueue:
    queue = SendQueue(PublisherSettings(**limits))
    for body in bodies:
        queue.add(body)
    return queue


def test_a_batch_is_the_json_that_the_gateway_reads() -> None:
    batch = queue_of(b'{"kind":"delta"}', b'{"kind":"data"}').next_batch()

    assert json.loads(batch.encode(b'"p"', 3)) == {
        "producer": "p",
        "epoch": 3,
        "number": 1,
        "messages": [{"payload": {"kind": "delta"}}, {"payload": {"kind": "data"}}],
    }


def test_a_batch_ends_at_its_limits() -> None:
    bodies = [b"x" * 100] * 10

    assert len(queue_of(*bodies, batch_items=9).next_batch().bodies) == 9
    assert len(queue_of(*bodies, batch_bytes=3 * 116).next_batch().bodies) == 3
    assert len(queue_of(*bodies, batch_bytes=3 * 116 - 1).next_batch().bodies) == 2
    assert len(queue_of(*bodies, batch_bytes=1).next_batch().bodies) == 1


def test_only_the_last_acknowledged_are_kept() -> None:
    queue = queue_of(*[b"x"] * 10, kept_items=4)
    queue.acknowledge(9)

    assert (queue.first_number, queue.next_number, queue.unsent_items) == (6, 10, 1)


def test_kept_bytes_are_bounded() -> None:
    queue = queue_of(*[b"x" * 10] * 10, kept_bytes=35)
    queue.acknowledge(10)

    assert queue.first_number == 8
    assert queue.unsent_bytes == 0


def test_a_rewind_sends_the_same_bodies_under_the_same_numbers() -> None:
    queue = queue_of(b"1", b"2", b"3", b"4")
    queue.acknowledge(3)

    assert queue.rewind(2) == 2
    batch = queue.next_batch()
    assert (batch.first_number, batch.bodies) == (2, (b"2", b"3", b"4"))
    assert queue.unsent_bytes == 3


def test_a_new_epoch_numbers_what_is_unacknowledged_from_one() -> None:
    queue = queue_of(b"1", b"2", b"3")
    queue.acknowledge(1)
    queue.renumber()
    queue.put_first(b"gap")

    assert (queue.next_batch().first_number, queue.next_batch().bodies) == (1, (b"gap", b"2", b"3"))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_a_number_always_means_the_same_message(steps: list[tuple[int, int, int]]) -> None:
    queue = queue_of(kept_items=7)
    added = 0
    for add, acknowledge, rewind in steps:
        for _ in range(add):
            added += 1
            queue.add(b"%d" % added)
        queue.acknowledge(min(acknowledge, queue.unsent_items))
        queue.rewind(max(queue.first_number, queue.next_number - rewind))
        batch = queue.next_batch()

        assert [int(body) for body in batch.bodies] == list(range(batch.first_number, added + 1))
        assert queue.unsent_bytes == sum(len(b"%d" % number) for number in range(queue.next_number, added + 1))
