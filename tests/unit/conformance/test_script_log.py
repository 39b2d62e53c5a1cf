"""The log that a scripted server plays: offsets, digests, merged frames, pages."""

import hashlib

import pytest

from sdk.conformance.script_log import BadScenario, ScriptLog, Span

LOG = ScriptLog(
    "s",
    [
        {"kind": "run_start", "run": "r"},
        {"kind": "delta", "run": "r", "text": "ü"},
        {"kind": "thinking", "run": "r", "text": "hm"},
        {"kind": "delta", "run": "r", "text": "b"},
        {"kind": "delta", "run": "r", "text": "c"},
        {"kind": "run_end", "run": "r"},
    ],
)


def test_offsets_are_bytes_of_the_run_and_of_its_track() -> None:
    assert [payload.get("at") for payload in LOG.payloads] == [None, 0, 0, 2, 3, None]


def test_the_digest_is_of_the_whole_text() -> None:
    assert LOG.payloads[-1]["sha256"] == hashlib.sha256("übc".encode()).hexdigest()


def test_a_merged_frame_names_its_first_and_last_message() -> None:
    frame = LOG.merged(Span(4, 5))

    assert (4, 5, "bc", 2) == (frame["first_seq"], frame["seq"], frame["payload"]["text"], frame["payload"]["at"])


def test_messages_of_two_tracks_cannot_be_merged() -> None:
    with pytest.raises(BadScenario, match="cannot be merged"):
        LOG.merged(Span(2, 4))


@pytest.mark.parametrize(
    ("since", "limit", "seqs", "after"), [(0, 2, [1, 2], 2), (4, 9, [5, 6], 6), (6, 9, [], 6), (9, 9, [], 9)]
)
def test_a_page_ends_at_its_limit_or_the_head(since: int, limit: int, seqs: list[int], after: int) -> None:
    frames, position = LOG.page(since, limit)

    assert (seqs, after) == ([frame["seq"] for frame in frames], position)
