"""Run texts: whatever is repeated, merged or cut, each byte is shown once and the sums are checked."""

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.client import texts as texts_module
from gateway.adapters.client.frames import decode_frame
from gateway.adapters.client.texts import ENDED_RUNS_KEPT, Change, Ended, RunText, RunTexts, Shown
from tests.unit.adapters.client.frame_texts import control, delta, gap, message


def apply(texts: RunTexts, *frames: str) -> list[Change]:
    return [texts.apply(decode_frame(frame)) for frame in frames]


def shown(changes: list[Change]) -> str:
    return "".join(change.text for change in changes if isinstance(change, Shown))


def start(seq: int, run: str = "r") -> str:
    return message(seq, {"kind": "run_start", "run": run})


def sums(text: str) -> dict[str, Any]:
    data = text.encode()
    return {"bytes": len(data), "code_points": len(text), "sha256": hashlib.sha256(data).hexdigest()}


def end(seq: int, text: str, *, run: str = "r", reasoning: str | None = None) -> str:
    payload: dict[str, Any] = {"kind": "run_end", "run": run, "reason": "complete", **sums(text)}
    if reasoning is not None:
        payload["reasoning"] = sums(reasoning)
    return message(seq, payload)


def thinking(seq: int, text: str, at: int) -> str:
    return message(seq, {"kind": "thinking", "run": "r", "text": text, "at": at})


def test_a_whole_run_is_shown_and_found_equal() -> None:
    changes = apply(
        RunTexts(), start(1), thinking(2, "hm", 0), delta(3, "né", 0), delta(4, "e", 3), end(5, "née", reasoning="hm")
    )

    assert changes == [
        None,
        Shown("r", "hm", is_reasoning=True),
        Shown("r", "né", is_reasoning=False),
        Shown("r", "e", is_reasoning=False),
        Ended("r", "complete", is_equal=True),
    ]


def test_a_text_that_differs_is_noticed() -> None:
    assert apply(RunTexts(), start(1), delta(2, "a", 0), end(3, "b"))[-1] == Ended("r", "complete", is_equal=False)


def test_reasoning_that_differs_is_noticed() -> None:
    changes = apply(RunTexts(), start(1), thinking(2, "a", 0), delta(3, "t", 0), end(4, "t", reasoning="b"))

    assert changes[-1] == Ended("r", "complete", is_equal=False)


def test_a_merged_frame_that_overlaps_is_sliced_by_bytes() -> None:
    texts = RunTexts()

    changes = apply(texts, start(1), delta(2, "né", 0), delta(4, "née👋", 0, first_seq=2), delta(3, "é", 1))

    assert shown(changes) == "née👋"
    assert texts.runs["r"].text.value() == "née👋"


def test_joining_in_the_middle_cannot_be_judged() -> None:
    changes = apply(RunTexts(), delta(9, "lo", 3), end(10, "hello"))

    assert changes == [Shown("r", "lo", is_reasoning=False), Ended("r", "complete", is_equal=None)]


def test_an_evicted_stretch_cannot_be_judged_and_the_rest_is_shown() -> None:
    changes = apply(
        RunTexts(), start(1), delta(2, "a", 0), gap(3, 4, "evicted", "e1.f1.4"), delta(5, "d", 3), end(6, "abcd")
    )

    assert shown(changes) == "ad"
    assert changes[-1] == Ended("r", "complete", is_equal=None)


def test_reasoning_goes_on_where_the_log_does_after_lost_writes() -> None:
    """The gap names lengths of texts only; a producer that thinks again thinks something else."""
    changes = apply(
        RunTexts(),
        start(1),
        thinking(2, "hm", 0),
        thinking(3, " lost", 2),
        gap(3, 3, "epoch_changed", "e1.f2.2", runs={"r": 0}),
        thinking(3, " other", 2),
        thinking(4, "!", 8),
        delta(5, "t", 0),
        end(6, "t", reasoning="hm other!"),
    )

    assert changes[-1] == Ended("r", "complete", is_equal=True)
    assert [change.text for change in changes if isinstance(change, Shown)] == ["hm", " lost", " other", "!", "t"]


def test_a_gap_that_names_the_thinking_cuts_it_at_once() -> None:
    """Also where nothing more of it comes; what is not named has none."""
    texts = RunTexts()

    apply(
        texts,
        start(1),
        thinking(2, "hm", 0),
        thinking(3, " lost", 2),
        gap(3, 3, "epoch_changed", "e1.f2.2", runs={"r": 0}, thinking={"r": 2}),
    )
    kept = texts.runs["r"].reasoning.value()
    apply(texts, gap(2, 2, "epoch_changed", "e1.f3.1", runs={"r": 0}, thinking={}))

    assert (kept, texts.runs["r"].reasoning.value()) == ("hm", "")


def test_reasoning_that_was_never_received_is_no_difference() -> None:
    joined_late = apply(RunTexts(), delta(9, "text", 0), end(10, "text", reasoning="hm"))
    evicted = apply(
        RunTexts(), start(1), gap(2, 4, "evicted", "e1.f1.4"), delta(5, "text", 0), end(6, "text", reasoning="hm")
    )

    assert joined_late[-1] == evicted[-1] == Ended("r", "complete", is_equal=None)


def test_an_end_without_a_digest_cannot_be_judged() -> None:
    payload = {"kind": "run_end", "run": "r", "reason": "abandoned", "sha256": None}

    assert apply(RunTexts(), start(1), delta(2, "a", 0), message(3, payload))[-1] == Ended("r", "abandoned", None)


def test_after_lost_writes_the_same_text_again_shows_nothing_twice() -> None:
    texts = RunTexts()

    changes = apply(
        texts,
        start(1),
        delta(2, "one ", 0),
        delta(3, "two ", 4),
        delta(4, "three", 8),
        gap(3, 4, "epoch_changed", "e1.f2.2", runs={"r": 4}),
        delta(3, "two th", 4),
        delta(4, "ree!", 10),
        end(5, "one two three!"),
    )

    assert shown(changes) == "one two three!"
    assert changes[-1] == Ended("r", "complete", is_equal=True)
    assert not texts.runs["r"].text.was_rewritten


def test_after_lost_writes_another_text_replaces_the_old_one() -> None:
    texts = RunTexts()

    changes = apply(
        texts,
        start(1),
        delta(2, "one two", 0),
        gap(2, 2, "epoch_changed", "e1.f2.1", runs={"r": 4}),
        delta(2, "2", 4),
        end(3, "one 2"),
    )

    assert shown(changes) == "one two2"
    assert changes[-1] == Ended("r", "complete", is_equal=True)
    assert texts.runs["r"].text.was_rewritten


def test_a_run_that_another_life_of_the_log_does_not_name_begins_anew() -> None:
    texts = RunTexts()

    changes = apply(
        texts,
        start(1),
        delta(2, "one", 0),
        gap(1, 2, "epoch_changed", "e2.f1.0", runs={}),
        start(1),
        delta(2, "one more", 0),
        end(3, "one more"),
    )

    assert shown(changes) == "one more"
    assert changes[-1] == Ended("r", "complete", is_equal=True)


def test_a_run_that_starts_again_under_its_name_is_another_text() -> None:
    changes = apply(RunTexts(), start(1), delta(2, "a", 0), end(3, "a"), start(4), delta(5, "b", 0), end(6, "b"))

    assert shown(changes) == "ab"
    assert changes[-1] == Ended("r", "complete", is_equal=True)


def test_ended_runs_are_forgotten_in_time_and_open_ones_kept() -> None:
    texts = RunTexts()
    apply(texts, start(1, "open"))
    for number in range(ENDED_RUNS_KEPT + 5):
        apply(texts, start(1, f"r{number}"), end(2, "", run=f"r{number}"))

    assert len(texts.runs) == ENDED_RUNS_KEPT + 1
    assert {"open", f"r{ENDED_RUNS_KEPT + 4}"} <= set(texts.runs)


def test_a_text_past_the_cap_is_shown_but_not_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr(texts_module, "MAX_TEXT_BYTES", 10)
    text = RunText()

    assert [text.add("a" * 10, 0), text.is_whole] == ["a" * 10, True]
    assert [text.add("b", 10), text.is_whole, text.add("c", 11)] == ["b", False, "c"]
    assert text.length == 12


@given(st.text(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=20))
def test_any_overlapping_frames_show_the_text_once(text: str, stretches: list[tuple[int, int]]) -> None:
    """Frames may begin anywhere at or before what is there, as merged frames after a change of sockets do."""
    run, out = RunText(), ""
    position = 0
    for back, ahead in [*stretches, (0, len(text))]:
        first = max(0, position - back)
        last = min(len(text), max(position, first + ahead))
        out += run.add(text[first:last], len(text[:first].encode()))
        position = max(position, last)

    assert out == text
    assert run.fields() == sums(text)


@given(st.text(min_size=1, max_size=40), st.integers(0, 40), st.integers(1, 10))
def test_any_cut_followed_by_the_same_text_shows_it_once(text: str, cut: int, step: int) -> None:
    cut = min(cut, len(text))
    run = RunText()
    out = run.add(text, 0)
    run.cut(len(text[:cut].encode()))
    more = text + "more"
    for first in range(cut, len(more), step):
        out += run.add(more[first : first + step], len(more[:first].encode()))

    assert out == more
    assert run.fields() == sums(more)


# ---- snapshots, code and cuts ---------------------------------------------------------------------------------------

START = {"kind": "run_start", "run": "r"}


def part(text: str, at: int, **fields: Any) -> str:
    return control("snapshot", **{"run": "r", "track": "text", "at": at, "text": text, "last": False} | fields)


def test_a_snapshot_shows_only_what_is_new_and_its_end_is_compared() -> None:
    told = {**START, "kind": "run_end", "reason": "complete", **sums("añbcd")}
    changes = apply(
        RunTexts(),
        start(1),
        delta(2, "añ", 0),
        part("añb", 0, start=START),
        part("cd", 4, last=True, end=told),
    )

    assert shown(changes) == "añb"
    assert changes[-1] == Ended("r", "complete", True, "cd")


def test_a_snapshot_from_nothing_then_the_log() -> None:
    changes = apply(RunTexts(), part("abc", 0, start=START, last=True), delta(9, "cde", 2), end(10, "abcde"))

    assert shown(changes) == "abcde"
    assert changes[-1] == Ended("r", "complete", True)


def test_code_is_part_of_the_text() -> None:
    code = {"kind": "code_block", "run": "r", "block": 1, "language": "py", "text": "x = 1\n", "at": 3}
    changes = apply(RunTexts(), start(1), delta(2, "So ", 0), message(3, code), end(4, "So x = 1\n"))

    assert changes[-1] == Ended("r", "complete", True)


@pytest.mark.parametrize("fields", [{"partial": True, "bytes": 9}, {"cut": True}])
def test_a_text_that_is_not_whole_proves_nothing(fields: dict[str, Any]) -> None:
    changes = apply(RunTexts(), part("abc", 0, start=START, last=True, **fields), end(9, "abcdefghi"))

    assert changes[-1] == Ended("r", "complete", None)


def test_a_cut_run_is_not_compared() -> None:
    changes = apply(RunTexts(), start(1), message(2, {"kind": "cut", "run": "r"}), end(3, "abc"))

    assert changes[-1] == Ended("r", "complete", None)
