"""Garbage: young cycles go soon, old ones when memory has grown, and what lives is never passed twice."""

import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from gateway.app.garbage import GROWTH, LEAST_GROWTH_BYTES, MEMORY_EVERY, Garbage
from gateway.domain.admission.pressure import Memory

MIB = 1024 * 1024


class Cycle:
    def __init__(self) -> None:
        self.itself: Cycle | None = self


@pytest.fixture(autouse=True)
def python_as_it_was() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def garbage(used: list[int], limit: int = 0) -> Garbage:
    made = Garbage(lambda: Memory(used[0], limit), lambda: 0.0)
    made.begin()
    return made


def test_a_young_cycle_is_gone_at_the_next_look() -> None:
    it = garbage([100 * MIB])
    watched = ref(Cycle())

    it.look()

    assert watched() is None


def test_what_lived_at_a_look_is_not_passed_again() -> None:
    it = garbage([100 * MIB])
    kept = Cycle()
    it.look()

    assert gc.is_tracked(kept)
    assert kept not in gc.get_objects()  # those that a pass would look at


@pytest.mark.parametrize(
    ("used", "more", "limit", "is_gone"),
    [
        (100 * MIB, LEAST_GROWTH_BYTES, 0, False),
        (100 * MIB, LEAST_GROWTH_BYTES + 1, 0, True),
        (600 * MIB, int(600 * MIB * (GROWTH - 1)), 0, False),
        (600 * MIB, int(600 * MIB * (GROWTH - 1)) + 1, 0, True),
        (100 * MIB, 96 * MIB, 384 * MIB, False),
        (100 * MIB, 96 * MIB + 1, 384 * MIB, True),
        (345 * MIB, 83 * MIB, 512 * MIB, False),  # half of what is left
        (345 * MIB, 84 * MIB, 512 * MIB, True),
        (400 * MIB, 57 * MIB, 512 * MIB, True),
        (100 * MIB, LEAST_GROWTH_BYTES, 4096 * MIB, False),
        (100 * MIB, LEAST_GROWTH_BYTES + 1, 4096 * MIB, True),
    ],
)
def test_an_old_cycle_is_gone_when_memory_has_grown(used: int, more: int, limit: int, is_gone: bool) -> None:
    in_use = [used]
    it = garbage(in_use, limit)
    old = Cycle()
    watched = ref(old)
    it.look()
    del old
    in_use[0] += more

    for _ in range(MEMORY_EVERY):
        it.look()

    assert (watched() is None) is is_gone


def test_growth_counts_from_the_least_that_was_in_use() -> None:
    in_use = [700 * MIB]
    it = garbage(in_use)
    old = Cycle()
    watched = ref(old)
    it.look()
    del old
    for used in (100 * MIB, 100 * MIB + LEAST_GROWTH_BYTES + 1):
        in_use[0] = used
        for _ in range(MEMORY_EVERY):
            it.look()

    assert watched() is None


def test_after_a_pass_over_everything_growth_counts_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    in_use = [100 * MIB]
    it = garbage(in_use)
    passes = []
    monkeypatch.setattr(gc, "unfreeze", lambda: passes.append(in_use[0]))
    in_use[0] = 500 * MIB

    for _ in range(3 * MEMORY_EVERY):
        it.look()
    in_use[0] = 757 * MIB
    for _ in range(3 * MEMORY_EVERY):
        it.look()

    assert passes == [500 * MIB, 757 * MIB]
