"""What the demo says of a run: nothing that is wrong may look right."""

from typing import Any

import pytest

from gateway.adapters.client.place import Tally
from gateway.adapters.client.texts import Run
from gateway.app.demo.check import passes
from gateway.app.demo.tally import ReaderResult, Said, Source, tally

RUN = "run-1"
FAULTS = ["kill -9 gateway-1", "freeze gateway-2"]


ALL_SAID = Said(1, 1, 1)


def result(
    *readers: ReaderResult, faults: list[str] = FAULTS, said: Said = ALL_SAID, is_over: bool = True
) -> dict[str, object]:
    """Ten messages of one run were published."""
    told = tally(10, Source({RUN: "text"}, ended={RUN}), list(readers), faults, said, 1.0, is_over=is_over)
    return told | {"storms_lost": 0, "media": 1}


def reader(*, is_equal: bool | None = True, seq: int = 10, **counts: Any) -> ReaderResult:
    return ReaderResult(Tally(**counts), {} if is_equal is None else {RUN: is_equal}, seq)


def test_all_equal_and_two_faults_pass() -> None:
    assert passes(result(reader(), reader()))


def test_one_fault_proves_too_little() -> None:
    assert not passes(result(reader(), faults=FAULTS[:1]))


def test_whatever_is_wrong_at_one_reader_fails() -> None:
    wrong = [
        reader(seq=9),
        reader(missing=1),
        reader(announced=1),
        reader(repeated=1),
        reader(reordered=1),
        reader(is_equal=False),
        reader(is_equal=None),
    ]

    assert [passes(result(reader(), one)) for one in wrong] == [False] * len(wrong)


@pytest.mark.parametrize("more", [{"storms_lost": 1}, {"media": 0}])
def test_storms_and_media_count(more: dict[str, int]) -> None:
    assert not passes(result(reader()) | more)


def test_what_never_came_is_lost_only_when_it_is_over() -> None:
    late = reader(seq=7, is_equal=None)

    assert (result(late, is_over=False)["lost"], result(late)["lost"]) == (0, 3)
    assert (result(late, is_over=False)["digests_equal"], result(late)["digests_equal"]) == (None, False)


@pytest.mark.parametrize("said", [Said(0, 1, 1), Said(1, 0, 1), Said(1, 1, 0)])
def test_what_people_said_must_have_arrived(said: Said) -> None:
    assert not passes(result(reader(), said=said))


def known(text: str, reasoning: str = "") -> Run:
    run = Run()
    run.text.add(text, 0)
    run.reasoning.add(reasoning, 0)
    return run


@pytest.mark.parametrize(
    ("text", "reason", "is_cut", "agrees"),
    [
        ("a text", "complete", False, True),
        ("a tex", "complete", False, False),
        ("a te", "interrupted", False, True),
        ("a t", "interrupted", False, False),
        ("a t", "interrupted", True, True),
        ("b", "interrupted", True, False),
        ("a te", "cancelled", False, True),
        ("a te", "abandoned", False, False),
    ],
)
def test_a_run_that_was_stopped_is_the_beginning_of_its_source(
    text: str, reason: str, is_cut: bool, agrees: bool
) -> None:
    source = Source({RUN: "a text"}, {RUN: "thoughts"})
    reasoning = "thoughts" if reason == "complete" else "tho"

    assert source.agrees(RUN, known(text, reasoning), {"reason": reason, "bytes": 4}, is_cut=is_cut) is agrees
