"""Recorded streams say exactly what their texts say: our own samples always, real providers' where they are at hand.

The latter lie beside the repository and are no part of it. When the folder is there, each of its streams is a test.
"""

import random
from pathlib import Path

import pytest

from gateway.domain.streams.dialects import DialectName
from gateway.domain.streams.pieces import EndReason
from gateway.samples import SAMPLES, Sample, load_dialect_samples, load_sample
from tests.unit.domain.streams.dialects.reading import cuts_of, data_of, read, read_by_many_hands, said, tools_of

SHARED = Path(__file__).parents[6] / "shared" / "llm-streams"
SAMPLES_AT_HAND = [*load_dialect_samples(), *(load_sample(name) for name in SAMPLES)]


def recordings() -> list[Sample]:
    return [
        Sample(
            file.stem,
            file.read_bytes(),
            said_in(file.with_suffix(".text")),
            said_in(file.with_suffix(".reasoning")),
            DialectName.ANTHROPIC if file.stem.startswith("anthropic") else DialectName.OPENAI,
        )
        for file in sorted(SHARED.glob("*.jsonl"))
    ]


def said_in(file: Path) -> str:
    return file.read_bytes().decode() if file.exists() else ""


RECORDINGS = [pytest.param(sample, id=sample.name) for sample in [*SAMPLES_AT_HAND, *recordings()]]


def test_all_the_recordings_are_read() -> None:
    at_hand = {file.stem for file in SHARED.glob("*.jsonl")}

    assert at_hand or not SHARED.exists()
    assert at_hand <= {sample.name for sample in recordings()}
    assert {sample.dialect for sample in SAMPLES_AT_HAND} == set(DialectName)


@pytest.mark.parametrize("sample", RECORDINGS)
def test_it_says_exactly_what_it_said(sample: Sample) -> None:
    pieces, end = read(sample.dialect, sample.chunks)
    text, reasoning, _, _ = said(pieces)

    assert text == sample.text
    assert reasoning == sample.reasoning
    assert (end.reason, end.problem, end.replaced) == (EndReason.COMPLETE, None, 0)
    assert end.usage is not None or sample.dialect is DialectName.TEXT


@pytest.mark.parametrize("sample", RECORDINGS)
def test_it_says_the_same_through_many_hands_and_in_any_parts(sample: Sample) -> None:
    rng = random.Random(sample.name)
    places = [rng.randrange(len(sample.chunks) + 1) for _ in range(40)]
    whole, end = read(sample.dialect, sample.chunks)

    for pieces, other_end in (
        read(sample.dialect, *cuts_of(sample.chunks, places)),
        read_by_many_hands(sample.dialect, sample.chunks, places),
    ):
        assert said(pieces) == said(whole)
        assert other_end == end


@pytest.mark.parametrize("sample", RECORDINGS)
def test_cut_short_it_is_incomplete_and_says_the_beginning(sample: Sample) -> None:
    if sample.dialect is DialectName.TEXT:
        return  # text has no mark that says where it ends
    pieces, end = read(sample.dialect, sample.chunks[: len(sample.chunks) // 3])
    text, reasoning, _, _ = said(pieces)

    assert end.reason in (EndReason.INCOMPLETE, EndReason.FAILED)
    assert sample.text.startswith(text)
    assert sample.reasoning.startswith(reasoning)


@pytest.mark.parametrize(
    "sample", [sample for sample in load_dialect_samples() if sample.dialect is not DialectName.TEXT]
)
def test_the_samples_of_all_dialects_make_the_same_call(sample: Sample) -> None:
    tools = tools_of(read(sample.dialect, sample.chunks)[0])

    deltas = [tool["tool_calls"][0]["function"] if "tool_calls" in tool else tool for tool in tools]
    arguments = [delta["arguments"] for delta in deltas]
    if sample.dialect is DialectName.NDJSON:
        assert arguments == [{"place": "Bibliothèque «Île»", "day": "today", "note": "🕖"}]
    else:
        assert "".join(arguments) == '{"place":"Bibliothèque «Île»","day":"today","note":"🕖"}'
    assert [delta["name"] for delta in deltas if "name" in delta] == ["opening_hours"]


@pytest.mark.skipif(not SHARED.exists(), reason="the recorded web search lies beside the repository")
def test_the_recorded_search_is_data_without_opaque_bytes() -> None:
    sample = next(sample for sample in recordings() if sample.name == "anthropic-web-search")

    data = data_of(read(sample.dialect, sample.chunks)[0])

    assert len([item for item in data if "citation" in item]) == 14
    assert "encrypted" not in str(data)
