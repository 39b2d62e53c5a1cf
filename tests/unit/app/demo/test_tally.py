"""What the demo says of a run: nothing that is wrong may look right."""

from gateway.adapters.client.place import Tally
from gateway.app.demo.check import passes
from gateway.app.demo.tally import ReaderResult, Source, tally

RUN = "run-1"
FAULTS = ["kill -9 gateway-1", "freeze gateway-2"]


def result(*readers: ReaderResult, faults: list[str] = FAULTS, is_over: bool = True) -> dict[str, object]:
    """Ten messages of one run were published."""
    return tally(10, Source({RUN: "text"}, ended={RUN}), list(readers), faults, 1.0, is_over=is_over)


def reader(*, is_equal: bool | None = True, **counts: int) -> ReaderResult:
    got = Tally(messages=10)
    for name, count in counts.items():
        setattr(got, name, count)
    return ReaderResult(got, {} if is_equal is None else {RUN: is_equal})


def test_all_equal_and_two_faults_pass() -> None:
    assert passes(result(reader(), reader()))


def test_one_fault_proves_too_little() -> None:
    assert not passes(result(reader(), faults=FAULTS[:1]))


def test_whatever_is_wrong_at_one_reader_fails() -> None:
    wrong = [
        reader(messages=9),
        reader(messages=9, missing=1),
        reader(messages=9, announced=1),
        reader(repeated=1),
        reader(reordered=1),
        reader(is_equal=False),
        reader(is_equal=None),
    ]

    assert [passes(result(reader(), one)) for one in wrong] == [False] * len(wrong)


def test_what_never_came_is_lost_only_when_it_is_over() -> None:
    late = reader(messages=7, is_equal=None)

    assert (result(late, is_over=False)["lost"], result(late)["lost"]) == (0, 3)
    assert (result(late, is_over=False)["digests_equal"], result(late)["digests_equal"]) == (None, False)
