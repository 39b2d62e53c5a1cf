"""Run texts: whatever is repeated, merged or cut, each byte is shown once and the sums are checked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from relayrouter import texts as texts_module
from relayrouter.texts import ENDED_RUNS_KEPT, Change, RunText, RunTexts

from sdk.python.tests.frame_texts import control, delta, end, frame, gap, message, start, sums


def apply(texts: RunTexts, *raws: str) -> list[Change]:
    return [texts.apply(frame(raw)) for raw in raws]


def shown(changes: list[Change]) -> str:
    return "".join(change.added for change in changes if not change.is_reasoning)


def verdicts(changes: list[Change]) -> list[bool | None]:
    return [change.is_equal for change in changes if change.ended is not None]


def thinking(seq: int, text: str, at: int) -> str:
    return message(seq, {"kind": "thinking", "run": "r", "text": text, "at": at})


def part(text: str, at: int, **fields: Any) -> str:
    return control("snapshot", **{"run": "r", "track": "text", "at": at, "text": text, "last": False} | fields)


START = {"kind": "run_start", "run": "r"}


def test_a_whole_run_is_shown_and_found_equal() -> None:
    """Text and reasoning are put together apart."""
    texts = RunTexts()
    changes = apply(
        texts, start(1), thinking(2, "hm", 0), delta(3, "né", 0), delta(4, "e", 3), end(5, "née", reasoning="hm")
    )

    assert shown(changes) == "née"
    assert texts.runs["r"].reasoning.value() == "hm"
    assert verdicts(changes) == [True]


@pytest.mark.parametrize(
    "last", [end(3, "b"), message(3, {"kind": "run_end", "run": "r", "reason": "complete", **sums("a"), "bytes": 2})]
)
def test_a_text_that_differs_is_noticed(last: str) -> None:
    """By its digest, and by its length."""
    assert verdicts(apply(RunTexts(), start(1), delta(2, "a", 0), last)) == [False]


def test_reasoning_that_differs_is_noticed() -> None:
    """It has a digest of its own."""
    assert verdicts(apply(RunTexts(), start(1), thinking(2, "a", 0), delta(3, "t", 0), end(4, "t", reasoning="b"))) == [
        False
    ]


def test_reasoning_without_a_digest_leaves_the_verdict_to_the_text() -> None:
    """Not every producer tells it."""
    assert verdicts(apply(RunTexts(), start(1), thinking(2, "a", 0), delta(3, "t", 0), end(4, "t"))) == [True]


def test_a_hole_in_a_text_that_nobody_announced_is_a_difference() -> None:
    """`at` jumped: something was changed on the way."""
    assert verdicts(apply(RunTexts(), start(1), delta(2, "a", 0), delta(3, "c", 2), end(4, "abc"))) == [False]


def test_a_merged_frame_that_overlaps_is_sliced_by_bytes() -> None:
    """Bytes, not characters: `at` counts UTF-8."""
    texts = RunTexts()
    changes = apply(texts, start(1), delta(2, "né", 0), delta(4, "née👋", 0, first_seq=2), delta(3, "é", 1))

    assert shown(changes) == "née👋"
    assert texts.runs["r"].text.value() == "née👋"


def test_two_runs_that_come_mixed_are_two_clean_texts() -> None:
    """Each frame belongs to the run that it names (L11)."""
    texts = RunTexts()
    frames = [start(1, "a"), start(2, "b")]
    for number in range(10):
        frames += [delta(3, f"a{number}", 2 * number, run="a"), delta(3, f"b{number}", 2 * number, run="b")]
    changes = apply(texts, *frames, end(4, "".join(f"a{n}" for n in range(10)), run="a"), delta(5, "!", 20, run="b"))

    assert verdicts(changes) == [True]
    assert texts.runs["b"].text.value() == "".join(f"b{n}" for n in range(10)) + "!"
    assert texts.runs["b"].reason is None


@pytest.mark.parametrize(
    "raws",
    [
        (delta(9, "lo", 3), end(10, "hello")),
        (start(1), delta(2, "a", 0), gap(3, 4, "evicted", "e1.f1.4"), delta(5, "d", 3), end(6, "abcd")),
        (start(1), message(2, {"kind": "cut", "run": "r"}), end(3, "abc")),
        (start(1), delta(2, "a", 0), message(3, {**START, "kind": "run_end", "reason": "abandoned", "sha256": None})),
        (part("abc", 0, start=START, last=True, partial=True, bytes=9), end(9, "abcdefghi")),
        (part("abc", 0, start=START, last=True, cut=True), end(9, "abcdefghi")),
        (start(1), gap(2, 4, "evicted", "e1.f1.4"), delta(5, "text", 0), end(6, "text", reasoning="hm")),
    ],
)
def test_a_text_that_was_not_received_whole_proves_nothing(raws: tuple[str, ...]) -> None:
    """Joined in the middle, evicted, cut, partial, or ended without a digest."""
    assert verdicts(apply(RunTexts(), *raws)) == [None]


def test_after_lost_writes_the_same_text_again_shows_nothing_twice() -> None:
    """The gap names how much of each run is still true."""
    changes = apply(
        RunTexts(), start(1), delta(2, "one ", 0), delta(3, "two ", 4), delta(4, "three", 8),
        gap(3, 4, "epoch_changed", "e1.f2.2", runs={"r": 4}), delta(3, "two th", 4), delta(4, "ree!", 10),
        end(5, "one two three!"),
    )  # fmt: skip

    assert shown(changes) == "one two three!"
    assert verdicts(changes) == [True]
    assert not any(change.is_rewritten for change in changes)


def test_after_lost_writes_another_text_replaces_the_old_one() -> None:
    """And says so: what is on screen is no longer true."""
    changes = apply(
        RunTexts(), start(1), delta(2, "one two", 0), gap(2, 2, "epoch_changed", "e1.f2.1", runs={"r": 4}),
        delta(2, "2", 4), end(3, "one 2"),
    )  # fmt: skip

    assert shown(changes) == "one two2"
    assert [change.is_rewritten for change in changes].count(True) == 1
    assert verdicts(changes) == [True]


def test_reasoning_goes_on_where_the_log_does_after_lost_writes() -> None:
    """The gap names lengths of texts only; a producer that thinks again thinks something else."""
    changes = apply(
        RunTexts(), start(1), thinking(2, "hm", 0), thinking(3, " lost", 2),
        gap(3, 3, "epoch_changed", "e1.f2.2", runs={"r": 0}), thinking(3, " other", 2), thinking(4, "!", 8),
        delta(5, "t", 0), end(6, "t", reasoning="hm other!"),
    )  # fmt: skip

    assert verdicts(changes) == [True]


def test_reasoning_is_cut_where_the_gap_says() -> None:
    """The same thoughts again are shown once."""
    changes = apply(
        RunTexts(), start(1), thinking(2, "hm", 0), thinking(3, " yes", 2),
        gap(3, 3, "epoch_changed", "e1.f2.2", runs={"r": 0}, thinking={"r": 2}), thinking(3, " yes.", 2),
        delta(4, "t", 0), end(5, "t", reasoning="hm yes."),
    )  # fmt: skip

    assert verdicts(changes) == [True]
    assert "".join(change.added for change in changes if change.is_reasoning) == "hm yes."


def test_a_run_that_another_life_of_the_log_does_not_name_begins_anew() -> None:
    """Its old text stays shown, and only what is more comes."""
    changes = apply(
        RunTexts(), start(1), delta(2, "one", 0), gap(1, 2, "epoch_changed", "e2.f1.0", runs={}), start(1),
        delta(2, "one more", 0), end(3, "one more"),
    )  # fmt: skip

    assert shown(changes) == "one more"
    assert verdicts(changes) == [True]


def test_a_run_that_starts_again_under_its_name_is_another_text() -> None:
    """Nothing of the first one is left."""
    changes = apply(RunTexts(), start(1), delta(2, "a", 0), end(3, "a"), start(4), delta(5, "b", 0), end(6, "b"))

    assert shown(changes) == "ab"
    assert verdicts(changes) == [True, True]


def test_a_snapshot_shows_only_what_is_new_and_its_end_is_compared() -> None:
    """What was there before it is not shown again."""
    told = {**START, "kind": "run_end", "reason": "complete", **sums("añbcd")}
    changes = apply(
        RunTexts(), start(1), delta(2, "añ", 0), part("añb", 0, start=START), part("cd", 4, last=True, end=told)
    )

    assert shown(changes) == "añbcd"
    assert verdicts(changes) == [True]


def test_a_snapshot_from_nothing_then_the_log() -> None:
    """The log may begin before the snapshot's end."""
    changes = apply(RunTexts(), part("abc", 0, start=START, last=True), delta(9, "cde", 2), end(10, "abcde"))

    assert shown(changes) == "abcde"
    assert verdicts(changes) == [True]


def test_code_is_part_of_the_text() -> None:
    """Its fences, too."""
    code = {"kind": "code_block", "run": "r", "block": 1, "language": "py", "text": "x = 1\n", "at": 3}

    assert verdicts(apply(RunTexts(), start(1), delta(2, "So ", 0), message(3, code), end(4, "So x = 1\n"))) == [True]


def test_ended_runs_are_forgotten_in_time_and_open_ones_kept() -> None:
    """A session may live for weeks."""
    texts = RunTexts()
    apply(texts, start(1, "open"))
    for number in range(ENDED_RUNS_KEPT + 5):
        apply(texts, start(1, f"r{number}"), end(2, "", run=f"r{number}"))

    assert len(texts.runs) == ENDED_RUNS_KEPT + 1
    assert {"open", f"r{ENDED_RUNS_KEPT + 4}"} <= set(texts.runs)


def test_a_text_past_the_cap_is_shown_but_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the cap it is whole, one byte more and it is only shown."""
    monkeypatch.setattr(texts_module, "MAX_TEXT_BYTES", 10)
    text = RunText()

    assert [text.add("a" * 10, 0)[0], text.is_whole] == ["a" * 10, True]
    assert [text.add("b", 10)[0], text.is_whole, text.add("c", 11)[0]] == ["b", False, "c"]
    assert text.equals(sums("a" * 10 + "bc")) is None


@given(st.text(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=20))
def test_any_overlapping_frames_show_the_text_once(text: str, stretches: list[tuple[int, int]]) -> None:
    """Frames may begin anywhere at or before what is there, as merged frames after a change of channels do."""
    run, out = RunText(), ""
    position = 0
    for back, ahead in [*stretches, (0, len(text))]:
        first = max(0, position - back)
        last = min(len(text), max(position, first + ahead))
        out += run.add(text[first:last], len(text[:first].encode()))[0]
        position = max(position, last)

    assert out == text
    assert run.equals(sums(text))


@given(st.text(min_size=1, max_size=40), st.integers(0, 40), st.integers(1, 10))
def test_any_cut_followed_by_the_same_text_shows_it_once(text: str, cut: int, step: int) -> None:
    """The producer sends again what the log lost."""
    cut = min(cut, len(text))
    run = RunText()
    out = run.add(text, 0)[0]
    run.cut(len(text[:cut].encode()))
    more = text + "more"
    for first in range(cut, len(more), step):
        out += run.add(more[first : first + step], len(more[:first].encode()))[0]

    assert out == more
    assert run.equals(sums(more))


@given(st.text(min_size=1, max_size=40), st.integers(0, 40), st.integers(1, 7))
def test_any_snapshot_over_any_known_part_shows_the_rest_once(text: str, known: int, step: int) -> None:
    """A client that was below the log has some of the text, all of it or nothing."""
    known = min(known, len(text))
    texts = RunTexts()
    changes = apply(texts, start(1), delta(2, text[:known], 0))
    parts = [(first, text[first : first + step]) for first in range(0, len(text), step)]
    changes += apply(texts, *(part(piece, len(text[:first].encode())) for first, piece in parts), end(9, text))

    assert shown(changes) == text
    assert verdicts(changes) == [True]
