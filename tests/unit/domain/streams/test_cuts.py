"""What an interrupting client does not get (design.md 6 "Interrupt")."""

import json
import random
from itertools import pairwise

import pytest

from gateway.domain.streams.cuts import MAX_CUTS, Cuts, CutStretch
from gateway.domain.streams.merge import OutFrame, merge
from gateway.domain.wire.entry import LogEntry


def entry(seq: int, run: str, cls: str = "d", at: int | None = 0) -> LogEntry:
    head = f'{{"type":"text","seq":{seq},"timestamp":{1000 + seq},"session_id":"a,\\"payload\\":{{","payload":'
    frame = f'{head}{{"kind":"delta","run":"{run}","text":"x","at":{seq}}}}}'
    return LogEntry(seq, cls.encode(), run.encode(), at, 1, frame.encode())


def cut(cuts: Cuts, *entries: LogEntry, is_end: bool = True) -> list[OutFrame]:
    frames = list(merge(cuts.apply(entries), 16_384))
    return [*frames, *merge(cuts.take_pending(), 16_384)] if is_end else frames


def spans(frames: list[OutFrame]) -> list[tuple[int, int, str]]:
    return [(f.first_seq, f.seq, json.loads(f.frame)["payload"]["kind"]) for f in frames]


def test_each_stretch_is_one_frame_and_other_runs_keep_their_place() -> None:
    cuts = Cuts()
    cuts.add("r1", above_seq=0, text_until=0)

    frames = cut(cuts, *[entry(n, "r1") for n in (1, 2, 3)], entry(4, "r2"), *[entry(n, "r1") for n in (5, 6)])

    assert spans(frames) == [(1, 3, "cut"), (4, 4, "delta"), (5, 6, "cut")]
    assert json.loads(frames[0].frame) == {
        "type": "text",
        "first_seq": 1,
        "seq": 3,
        "timestamp": 1003,
        "session_id": 'a,"payload":{',
        "payload": {"kind": "cut", "run": "r1"},
    }


@pytest.mark.parametrize(("cls", "at", "is_cut"), [
    ("d", 0, True), ("t", 0, True), ("k", 0, True), ("l", None, True), ("o", 5, True),
    ("o", None, False), ("s", None, False), ("e", None, False),
])  # fmt: skip
def test_only_what_bears_text_is_cut(cls: str, at: int | None, is_cut: bool) -> None:
    cuts = Cuts()
    cuts.add("r1", above_seq=0, text_until=0)

    assert (spans(cut(cuts, entry(1, "r1", cls, at)))[0][2] == "cut") == is_cut


def test_a_stretch_goes_on_over_pages() -> None:
    cuts = Cuts()
    cuts.add("r1", above_seq=0, text_until=0)

    first = cut(cuts, entry(1, "r2"), entry(2, "r1"), is_end=False)
    second = cut(cuts, entry(3, "r1"), entry(4, "r1"), is_end=False)
    third = cut(cuts, entry(5, "r1"), entry(6, "r1", "e", None))

    assert spans(first) == [(1, 1, "delta")]
    assert second == []
    assert [(f.first_seq, f.seq) for f in third] == [(2, 5), (6, 6)]


def test_what_was_seen_passes() -> None:
    cuts = Cuts()
    cuts.add("r1", above_seq=2, text_until=9)

    assert [f[:2] for f in spans(cut(cuts, *[entry(n, "r1") for n in (1, 2, 3, 4)]))] == [(1, 1), (2, 2), (3, 4)]


def test_a_run_of_the_same_name_that_begins_later_is_not_cut() -> None:
    cuts = Cuts()
    cuts.add("r1", above_seq=0, text_until=0)

    frames = cut(
        cuts, entry(1, "r1", "s", None), entry(2, "r1"), entry(3, "r1", "e", None), entry(4, "r1", "s", None),
        entry(5, "r1"),
    )  # fmt: skip

    assert [json.loads(f.frame)["payload"]["kind"] for f in frames][1] == "cut"
    assert (frames[-1].first_seq, json.loads(frames[-1].frame)["payload"]["kind"]) == (5, "delta")
    assert cuts.of("r1") is None


def test_cuts_are_bounded_and_known_once() -> None:
    cuts = Cuts()
    added = [cuts.add(f"r{n}", above_seq=0, text_until=0) for n in range(MAX_CUTS)]

    assert all(added)
    assert not cuts.add("r0", above_seq=0, text_until=0)
    assert cuts.add("more", above_seq=0, text_until=0)
    assert cuts.of("r0") is None


@pytest.mark.parametrize("seed", range(20))
def test_every_seq_comes_once_however_the_log_is_read(seed: int) -> None:
    rng = random.Random(seed)
    entries = [entry(n, rng.choice(["r1", "r2"]), rng.choice("dktlo"), rng.choice([None, n])) for n in range(1, 60)]
    cuts = Cuts()
    cuts.add("r1", above_seq=rng.randrange(10), text_until=0)
    frames: list[OutFrame] = []
    start = 0
    while start < len(entries):
        size = rng.randrange(1, 9)
        frames += cut(cuts, *entries[start : start + size], is_end=False)
        start += size
    frames += [OutFrame(c.first_seq, c.seq, c.frame) for c in cuts.take_pending() if isinstance(c, CutStretch)]

    assert [seq for f in frames for seq in range(f.first_seq, f.seq + 1)] == list(range(1, 60))
    stretches = [f for f in frames if b'"kind":"cut"' in f.frame]
    runs = {seq: entries[seq - 1].run for f in stretches for seq in range(f.first_seq, f.seq + 1)}
    assert set(runs.values()) <= {b"r1"}
    assert not any(a.seq + 1 == b.first_seq for a, b in pairwise(stretches)), "not maximal"
