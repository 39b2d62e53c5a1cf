"""Merged frames carry the same text, bounded, of one run and one kind."""

import json
from collections import defaultdict
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.merge import OutFrame, merge
from gateway.domain.wire.entry import LogEntry
from gateway.domain.wire.payload import make_item
from gateway.domain.wire.ws_frames import decode_texts, encode_batches

KIB_16 = 16 * 1024


def entry(seq: int, payload: dict[str, object], at: int | None, session: str = "chat-1") -> LogEntry:
    """As the append script makes it."""
    item = make_item(payload)
    head = f'{{"type":"text","seq":{seq},"timestamp":{1_000 + seq},"session_id":{json.dumps(session)},"payload":'
    tail = b"}}" if at is None else b',"at":%d}}' % at
    return LogEntry(seq, item.cls.encode(), item.run.encode(), at, item.text_bytes, head.encode() + item.body + tail)


def deltas(*texts: str, run: str = "r1", first_seq: int = 1, kind: str = "delta") -> list[LogEntry]:
    entries, at = [], 0
    for seq, text in enumerate(texts, first_seq):
        entries.append(entry(seq, {"kind": kind, "run": run, "text": text}, at))
        at += len(text.encode())
    return entries


def test_one_entry_is_the_frame_itself() -> None:
    entries = deltas("hi")

    assert list(merge(entries, KIB_16)) == [OutFrame(1, 1, entries[0].frame)]


def test_consecutive_deltas_become_one_frame() -> None:
    merged = list(merge(deltas("He", "llo", " \u4f60\U0001f600"), KIB_16))

    assert [(1, 3)] == [(out.first_seq, out.seq) for out in merged]
    assert json.loads(merged[0].frame) == {
        "type": "text",
        "first_seq": 1,
        "seq": 3,
        "timestamp": 1_003,
        "session_id": "chat-1",
        "payload": {"kind": "delta", "run": "r1", "text": "Hello \u4f60\U0001f600", "at": 0},
    }


def test_at_is_that_of_the_first_and_timestamp_that_of_the_last() -> None:
    entries = deltas("aa", "bb", "cc")[1:]

    frame = json.loads(next(merge(entries, KIB_16)).frame)

    assert (frame["first_seq"], frame["seq"], frame["timestamp"], frame["payload"]["at"]) == (2, 3, 1_003, 2)


def test_other_kinds_keep_their_place() -> None:
    entries = deltas("a", "b")
    entries.append(entry(3, {"kind": "data", "text": "x", "data": [1]}, None))
    entries += [entry(4, {"kind": "delta", "run": "r1", "text": "c"}, 2)]

    merged = list(merge(entries, KIB_16))

    assert [(1, 2), (3, 3), (4, 4)] == [(out.first_seq, out.seq) for out in merged]
    assert entries[2].frame == merged[1].frame


def test_runs_and_kinds_are_never_mixed() -> None:
    entries = [
        entry(1, {"kind": "delta", "run": "r1", "text": "a"}, 0),
        entry(2, {"kind": "delta", "run": "r2", "text": "b"}, 0),
        entry(3, {"kind": "thinking", "run": "r2", "text": "c"}, 0),
        entry(4, {"kind": "thinking", "run": "r2", "text": "d"}, 1),
    ]

    assert [(1, 1), (2, 2), (3, 4)] == [(o.first_seq, o.seq) for o in merge(entries, KIB_16)]


def test_kinds_are_not_mixed_even_where_their_offsets_meet() -> None:
    entries = [
        entry(1, {"kind": "delta", "run": "r1", "text": "a"}, 0),
        entry(2, {"kind": "thinking", "run": "r1", "text": "b"}, 1),
    ]

    assert [1, 2] == [out.seq for out in merge(entries, KIB_16)]


def test_a_run_whose_text_does_not_follow_is_not_merged() -> None:
    entries = [deltas("a")[0], entry(2, {"kind": "delta", "run": "r1", "text": "b"}, 7)]

    assert [1, 2] == [out.seq for out in merge(entries, KIB_16)]


def test_a_hole_in_the_numbers_is_not_merged_over() -> None:
    first, _, third = deltas("a", "", "b")

    assert [(1, 1), (3, 3)] == [(out.first_seq, out.seq) for out in merge([first, third], KIB_16)]


def test_text_that_looks_like_an_envelope_is_only_text() -> None:
    evil = 'x","at":5}},"text":"y\\","at":7'

    merged = list(merge(deltas(evil, evil, run='r","text":"'), KIB_16))

    assert [evil + evil] == [json.loads(out.frame)["payload"]["text"] for out in merged]


def test_a_frame_that_only_claims_to_be_canonical_goes_as_it_is() -> None:
    odd = LogEntry(2, b"d", b"r1", 1, 1, b'{"kind":"odd"}')

    assert [b'{"kind":"odd"}'] == [out.frame for out in merge([odd], KIB_16)]


@st.composite
def logs(draw: st.DrawFn) -> list[LogEntry]:
    ats: dict[tuple[str, str], int] = {}
    entries = []
    seq = draw(st.integers(1, 10_000))
    for _ in range(draw(st.integers(0, 30))):
        kind = draw(st.sampled_from(["delta", "delta", "delta", "thinking", "data"]))
        run = draw(st.sampled_from(["r1", "\u00e9"]))
        text = draw(st.text(max_size=40))
        if kind == "data":
            entries.append(entry(seq, {"kind": kind, "text": text}, None))
        else:
            at = ats.get((kind, run), 0)
            item = entry(seq, {"kind": kind, "run": run, "text": text}, at)
            ats[kind, run] = at + item.text_bytes
            entries.append(item)
        seq += 1
    return entries


@given(logs(), st.integers(150, 700))
def test_merging_loses_nothing_and_stays_within_its_bound(entries: list[LogEntry], max_bytes: int) -> None:
    merged = list(merge(entries, max_bytes))

    covered = [seq for out in merged for seq in range(out.first_seq, out.seq + 1)]
    assert [item.seq for item in entries] == covered
    assert all(len(out.frame) <= max_bytes for out in merged if out.first_seq != out.seq)
    by_seq = {item.seq: json.loads(item.frame)["payload"] for item in entries}
    for out in merged:
        frame = json.loads(out.frame)
        sources = [by_seq[seq] for seq in range(out.first_seq, out.seq + 1)]
        assert frame["payload"]["text"] == "".join(source["text"] for source in sources)
        assert len(list(groupby((source["kind"], source.get("run")) for source in sources))) == 1
        assert frame["payload"].get("at") == sources[0].get("at")
        assert frame["seq"] == out.seq
        assert frame.get("first_seq", frame["seq"]) == out.first_seq


@st.composite
def conversations(draw: st.DrawFn) -> list[LogEntry]:
    """Runs and kinds that take turns as they like, code blocks in parts among them."""
    ats: dict[tuple[str, bool], int] = {}
    entries = []
    for seq in range(1, draw(st.integers(1, 60)) + 1):
        kind = draw(st.sampled_from(["delta", "delta", "thinking", "code_block", "run_end", "data"]))
        run = draw(st.sampled_from(["r1", "r2", "\u00e9"]))
        payload: dict[str, object] = {"kind": kind, "run": run}
        track = run, kind == "thinking"
        at = None if kind in ("run_end", "data") else ats.get(track, 0)
        if at is not None:
            payload["text"] = draw(st.text(min_size=1, max_size=30))
        if kind == "code_block":
            payload |= {"block": 1, "part": seq, "last": False}
        made = entry(seq, payload, at)
        ats[track] = ats.get(track, 0) + made.text_bytes
        entries.append(made)
    return entries


def texts(payloads: list[dict[str, str]]) -> dict[tuple[str, bool], str]:
    """Of each run: its text and its reasoning."""
    found: dict[tuple[str, bool], str] = defaultdict(str)
    for payload in payloads:
        found[payload["run"], payload["kind"] == "thinking"] += payload.get("text", "")
    return found


@given(conversations(), st.integers(150, 700), st.integers(300, 3_000))
def test_a_turn_in_frames_of_several_messages_is_the_same_text_without_a_hole(
    entries: list[LogEntry], merged_bytes: int, frame_bytes: int
) -> None:
    """Whatever takes turns: positions follow each other, each run has its text, and no frame is above its bound."""
    encoded = encode_batches((out.frame for out in merge(entries, merged_bytes)), frame_bytes)
    frames = [(len(text), json.loads(text)) for text in decode_texts(encoded)]
    envelopes = [one for _, frame in frames for one in (frame if isinstance(frame, list) else [frame])]

    covered = [seq for one in envelopes for seq in range(one.get("first_seq", one["seq"]), one["seq"] + 1)]
    assert covered == [item.seq for item in entries]
    assert texts([one["payload"] for one in envelopes]) == texts(
        [json.loads(item.frame)["payload"] for item in entries]
    )
    assert all(size <= frame_bytes for size, frame in frames if isinstance(frame, list))
