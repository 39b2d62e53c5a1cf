"""Slots of keys, and what servers say of them."""

import pytest

from gateway.adapters.resp.slots import SLOTS, View, parse_redirect, parse_view, slot_of
from gateway.ports import StoreUnavailable

HERE = ("10.0.0.1", 6379)
INFO = b"cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_current_epoch:7\r\n"


@pytest.mark.parametrize(
    ("key", "slot"),
    [(b"123456789", 0x31C3), (b"foo", 12182), (b"bar", 5061), (b"", 0)],
)
def test_a_slot_is_the_key_s_crc16(key: bytes, slot: int) -> None:
    """The values that servers answer to CLUSTER KEYSLOT."""
    assert slot_of(key) == slot


@pytest.mark.parametrize(
    ("key", "same_as"),
    [
        (b"rr:{bar}:meta", b"bar"),
        (b"{bar}{foo}", b"bar"),
        (b"x{{bar}}y", b"{bar"),
        (b"a}b{bar}", b"bar"),
    ],
)
def test_the_first_hash_tag_decides(key: bytes, same_as: bytes) -> None:
    assert slot_of(key) == slot_of(same_as)


@pytest.mark.parametrize("key", [b"x{}{bar}", b"x{bar", b"x}bar{"])
def test_what_is_no_hash_tag_counts_as_it_is(key: bytes) -> None:
    """An empty tag is none, and no later one is looked for."""
    assert slot_of(key) not in (slot_of(b"bar"), slot_of(b""))


def test_a_view_has_owners_replicas_epoch_and_state() -> None:
    slots = [
        [0, 8191, [b"10.0.0.2", 6380, b"id", []], [b"10.0.0.4", 6381, b"id", []]],
        [8192, 16383, [b"10.0.0.3", 6379, b"id", []]],
    ]

    view = parse_view(slots, INFO, HERE)

    assert (view.owners[0], view.owners[8191], view.owners[8192]) == (
        ("10.0.0.2", 6380), ("10.0.0.2", 6380), ("10.0.0.3", 6379),
    )  # fmt: skip
    assert len(view.owners) == SLOTS
    assert view.replicas == {("10.0.0.4", 6381)}
    assert (view.epoch, view.is_ok) == (7, True)


@pytest.mark.parametrize("name", [b"", None, b"?"])
def test_a_server_without_a_name_is_the_one_that_was_asked(name: bytes | None) -> None:
    view = parse_view([[0, 16383, [name, 7000, b"id"]]], INFO, HERE)

    assert view.owners[0] == ("10.0.0.1", 7000)


def test_slots_of_nobody_are_nobody_s() -> None:
    view = parse_view([[1, 1, [b"h", 1, b"id"]]], INFO, HERE)

    assert (view.owners[0], view.owners[1], view.owners[2]) == (None, ("h", 1), None)


@pytest.mark.parametrize(
    ("slots", "info"),
    [(None, INFO), ([[0, SLOTS, [b"h", 1, b"id"]]], INFO), ([[0]], INFO), ([], b"cluster_state:ok"), ([], None)],
)
def test_what_is_no_answer_of_a_cluster_is_refused(slots: object, info: object) -> None:
    with pytest.raises(StoreUnavailable, match="no member of a cluster"):
        parse_view(slots, info, HERE)


def test_who_sees_most_primaries_is_right_then_the_higher_epoch() -> None:
    """A replica that is cut off raises its epoch by asking for votes that nobody gives."""
    cut_off, before, after = (
        View((), frozenset(), 9, False),
        View((), frozenset(), 6, True),
        View((), frozenset(), 7, True),
    )

    assert max((cut_off, before, after), key=lambda view: view.rank) is after


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("MOVED 3999 127.0.0.1:6381", (3999, ("127.0.0.1", 6381))),
        ("ASK 16383 ::1:6381", (16383, ("::1", 6381))),
        ("MOVED 1 :6381", (1, ("10.0.0.1", 6381))),
        ("MOVED 16384 h:1", None),
        ("MOVED x h:1", None),
        ("MOVED 1 h:port", None),
        ("READONLY You can't write", None),
    ],
)
def test_a_redirection_names_slot_and_server(reason: str, found: object) -> None:
    assert parse_redirect(reason, HERE) == found
