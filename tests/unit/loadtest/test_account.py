"""The judge itself: everything that a gateway may get wrong is found, and nothing that the protocol allows."""

from typing import Any

import pytest

from loadtest.account import View
from loadtest.findings import Findings, Place
from loadtest.record import Record
from loadtest.track import SocketTrack
from loadtest.truth import Truth

LINE, FORK = "e.f1", "e.f2"


START = Place(LINE, 0)


def track(start: Place | None = START, welcome: str = f"{LINE}.0") -> tuple[SocketTrack, Findings]:
    findings = Findings()
    socket = SocketTrack(start, findings)
    socket.welcome(welcome)
    return socket, findings


def frame(seq: int, text: str, at: int, *, first: int | None = None, run: str = "r") -> dict[str, Any]:
    payload = {"kind": "delta", "run": run, "text": text, "at": at}
    return {"seq": seq, "payload": payload} | ({} if first is None else {"first_seq": first})


def gap(first: int, last: int, reason: str, cursor: str, **more: Any) -> dict[str, Any]:
    return {"first": first, "last": last, "reason": reason, "cursor": cursor, **more}


def test_contiguous_frames_are_flawless() -> None:
    socket, findings = track()

    assert [socket.text(1, 1), socket.text(2, 5), socket.text(6, 6)] == [True, True, True]
    assert not findings.counts


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        ([(1, 1), (3, 3)], {"lost": 1}),
        ([(1, 1), (4, 9)], {"lost": 2}),
        ([(1, 1), (1, 1)], {"repeated": 1}),
        ([(1, 3), (2, 4)], {"repeated": 1}),
        ([(1, 1), (3, 3), (2, 2)], {"reordered": 1, "lost": 0}),
        ([(2, 1)], {"lost": 1, "bad_frame": 1}),
    ],
)
def test_broken_order_is_counted(frames: list[tuple[int, int]], found: dict[str, int]) -> None:
    socket, findings = track()

    for first, seq in frames:
        socket.text(first, seq)

    assert found == dict(findings.counts)


def test_text_before_the_welcome_is_found() -> None:
    findings = Findings()

    SocketTrack(None, findings).text(1, 1)

    assert findings.counts["bad_welcome"] == 1


def test_fork_without_a_word_is_found() -> None:
    socket, findings = track(Place(LINE, 7), f"{FORK}.7")

    socket.text(8, 8)

    assert {"unannounced_fork": 1} == dict(findings.counts)


def test_announced_fork_is_fine() -> None:
    socket, findings = track(Place(LINE, 7), f"{FORK}.7")

    socket.forked(f"{FORK}.7")
    socket.text(8, 8)

    assert not findings.counts


@pytest.mark.parametrize(
    ("payload", "is_right"),
    [
        (gap(8, 12, "evicted", f"{LINE}.12"), True),
        (gap(9, 12, "evicted", f"{LINE}.12"), False),
        (gap(8, 12, "evicted", f"{LINE}.11"), False),
        (gap(4, 7, "epoch_changed", f"{FORK}.3"), True),
        (gap(4, 6, "epoch_changed", f"{FORK}.3"), False),
        (gap(4, 7, "epoch_changed", f"{LINE}.3"), False),
        (gap(6, 7, "ahead", f"{LINE}.0"), True),
        (gap(6, 8, "ahead", f"{LINE}.0"), False),
        (gap(1, 7, "unknown_session", "e2.f9.0"), True),
    ],
)
def test_gap_must_name_what_the_client_lacks(payload: dict[str, Any], is_right: bool) -> None:
    socket, findings = track(Place(LINE, 7), f"{LINE}.7")

    socket.gap(payload)

    assert is_right == (not findings.counts)
    assert Place.parse(payload["cursor"]) == socket.place


def test_view_takes_back_what_a_fork_has_lost() -> None:
    findings = Findings()
    socket, view = SocketTrack(Place(LINE, 0), findings), View(findings)
    socket.welcome(f"{LINE}.0")
    view.welcome(Place(LINE, 0))
    for message in (frame(1, "añ", 0), frame(2, "b", 3), frame(3, "c", 4)):
        socket.text(message["seq"], message["seq"])
        view.text(message)

    view.gap(socket.gap(gap(2, 3, "epoch_changed", f"{FORK}.1")), {"r": 3})
    socket.text(2, 2)
    view.text(frame(2, "B", 3))

    assert not findings.counts
    assert {"r": "añB"} == view.texts("text")
    assert Place(FORK, 2) == view.place
    assert view.voided == 2


def test_wrong_length_of_a_run_is_found() -> None:
    findings = Findings()
    view = View(findings)
    view.welcome(Place(LINE, 0))
    view.text(frame(1, "abc", 0))
    view.text(frame(2, "d", 3))

    view.gap(SocketTrack(Place(LINE, 2), findings).gap(gap(2, 2, "epoch_changed", f"{FORK}.1")), {"r": 2})

    assert {"bad_runs": 1} == dict(findings.counts)


def test_second_socket_of_a_move_overlaps_without_a_repeat() -> None:
    findings = Findings()
    view = View(findings)
    view.welcome(Place(LINE, 0))
    for message in (frame(1, "ab", 0), frame(2, "日", 2), frame(2, "日", 2), frame(3, "ab日c", 0, first=1)):
        view.text(message)

    assert not findings.counts
    assert {"r": "ab日c"} == view.texts("text")
    assert view.overlaps == 3


def test_wrong_at_is_found() -> None:
    findings = Findings()
    view = View(findings)
    view.welcome(Place(LINE, 0))
    view.text(frame(1, "ab", 0))
    view.text(frame(2, "c", 3))

    assert {"bad_at": 1} == dict(findings.counts)


@pytest.mark.parametrize(
    ("message", "is_true"),
    [
        (frame(1, "a", 0), True),
        (frame(1, "A", 0), False),
        (frame(1, "a", 0, run="other"), False),
        (frame(2, "ab", 0, first=1), True),
        (frame(2, "aB", 0, first=1), False),
        ({"seq": 3, "payload": {"kind": "data", "n": 1, "at": 9}}, True),
        ({"seq": 3, "payload": {"kind": "data", "n": 1, "more": 2}}, False),
        (frame(4, "?", 2), True),
        (frame(4, "!", 2), False),
    ],
)
def test_text_is_compared_to_the_byte(message: dict[str, Any], is_true: bool) -> None:
    published: list[tuple[str, int, dict[str, Any]]] = [
        (LINE, 1, {"kind": "delta", "run": "r", "text": "a"}),
        (LINE, 2, {"kind": "delta", "run": "r", "text": "b"}),
        (LINE, 3, {"kind": "data", "n": 1}),
    ]
    truth = Truth(published, [{"kind": "delta", "run": "r", "text": "?"}])
    findings = Findings()
    view = View(findings)
    view.welcome(Place(FORK, message.get("first_seq", message["seq"]) - 1))
    view.text(message)

    truth.compare(view.applied[0], findings)

    assert is_true == (not findings.counts)


# ---- snapshots and cuts --------------------------------------------------------------------------------------------


def part(text: str, at: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "snapshot", "run": "r", "track": "text", "at": at, "text": text, "last": False, **fields}


def test_a_snapshot_stands_for_what_no_frame_brought() -> None:
    findings = Findings()
    view, track = View(findings), SocketTrack(Place(LINE, 1), findings)
    track.welcome(f"{LINE}.1")
    view.welcome(Place(LINE, 1))
    for payload in (part("añ", 0), part("b", 3, last=True, cursor=f"{LINE}.5")):
        track.snapshot(payload)
        view.snapshot(payload)
    assert track.text(6, 6)
    view.text(frame(6, "c", 4))

    assert not findings.counts
    assert {"r": "añbc"} == view.texts("text")
    assert view.missing() == []
    assert (view.rebuilt, view.place) == (4, Place(LINE, 6))


def test_a_second_snapshot_and_replayed_frames_overlap_by_the_same_bytes() -> None:
    findings = Findings()
    view = View(findings)
    view.welcome(Place(LINE, 0))
    view.text(frame(1, "ab", 0))
    view.snapshot(part("abcd", 0, cursor=f"{LINE}.4"))
    view.text(frame(5, "de", 3))
    view.snapshot(part("abc", 0))
    view.snapshot(part("def", 3, cursor=f"{LINE}.7"))

    assert not findings.counts
    assert {"r": "abcdef"} == view.texts("text")


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ([part("ab", 0), part("d", 3)], "bad_snapshot"),
        ([part("ab", 0), part("x", 1)], "bad_snapshot"),
    ],
)
def test_a_snapshot_that_does_not_fit_is_found(parts: list[dict[str, Any]], found: str) -> None:
    findings = Findings()
    view = View(findings)
    view.welcome(Place(LINE, 0))
    for payload in parts:
        view.snapshot(payload)

    assert set(findings.counts) == {found}


def test_a_log_that_has_other_text_than_the_snapshot_is_found() -> None:
    findings = Findings()
    view = View(findings)
    view.welcome(Place(LINE, 0))
    view.snapshot(part("abcd", 0, cursor=f"{LINE}.4"))
    view.text(frame(5, "xe", 3))

    assert set(findings.counts) == {"bad_overlap"}


def test_a_snapshot_never_steps_back() -> None:
    findings = Findings()
    track = SocketTrack(Place(LINE, 9), findings)
    track.welcome(f"{LINE}.9")
    track.snapshot({"kind": "snapshot", "cursor": f"{LINE}.5"})

    assert set(findings.counts) == {"bad_snapshot"}


def test_lost_writes_cut_a_rebuilt_text_to_the_base() -> None:
    findings = Findings()
    view = View(findings)
    view.welcome(Place(LINE, 0))
    view.snapshot(part("abcd", 0, cursor=f"{LINE}.4"))
    view.gap(SocketTrack(Place(LINE, 4), findings).gap(gap(4, 4, "epoch_changed", f"{FORK}.3")), {"r": 2})
    view.text(frame(4, "X", 2))

    assert not findings.counts
    assert {"r": "abX"} == view.texts("text")


@pytest.mark.parametrize(("run", "is_right"), [("r", True), ("other", False)])
def test_a_cut_may_only_stand_for_text_of_its_run(run: str, is_right: bool) -> None:
    findings = Findings()
    truth = Truth([(LINE, n, {"kind": "delta", "run": "r", "text": "x"}) for n in (1, 2)], [])
    view = View(findings)
    view.welcome(Place(LINE, 0))
    view.text({"seq": 2, "first_seq": 1, "payload": {"kind": "cut", "run": run}})
    truth.compare(view.applied[0], findings)

    assert (not findings.counts) == is_right


def test_text_of_an_interrupted_run_is_found() -> None:
    record = Record("s")
    track = SocketTrack(None, record.findings)
    envelope = {"type": "control", "session_id": "s"}
    welcome = {"kind": "welcome", "cursor": f"{LINE}.0", "resumed": "fresh", "gateway": "g"}
    record.message(track, {**envelope, "payload": welcome}, 1)
    record.interrupted["r"] = 2
    record.message(track, {**envelope, "payload": part("ab", 0, cut=True)}, 1)

    assert not record.findings.counts
    record.message(track, {**envelope, "payload": part("c", 2)}, 1)
    record.message(track, {"type": "text", "session_id": "s", "timestamp": 1, **frame(1, "d", 2)}, 1)
    assert record.findings.counts["after_interrupt"] == 2
