"""Unit tests of gateway.core.runs.pipeline: what was said is exact, wherever it is cut and whoever goes on."""

import json
import random
import time

import pytest

from gateway.core.runs.batch import Batch
from gateway.core.runs.pipeline import SEAL_ITEMS, Pipeline
from gateway.domain.streams.dialects import DialectName
from gateway.domain.streams.pieces import EndReason
from gateway.domain.streams.run_options import RunOptions
from gateway.domain.streams.segment import SegmentMode, SegmentOptions
from gateway.domain.wire.entry import EntryClass
from gateway.domain.wire.payload import make_item
from gateway.samples import LONG_ANSWER, REASONED_ANSWER, Sample, load_dialect_samples, load_sample
from tests.unit.core.runs.pipelines import RUN, payloads, pipeline, taken, texts

SEEDS = range(12)
SAMPLES = [load_sample(LONG_ANSWER), load_sample(REASONED_ANSWER), *load_dialect_samples()]
MODES = [
    SegmentOptions(),
    SegmentOptions(tokens=1, max_bytes=16),
    SegmentOptions(SegmentMode.SENTENCE),
    SegmentOptions(SegmentMode.STRUCTURE),
    SegmentOptions(SegmentMode.PATTERN, pattern=r"[.!?]\s|\n"),
    SegmentOptions(SegmentMode.RAW, first_immediately=False),
]


def options(segment: SegmentOptions, dialect: DialectName = DialectName.NDJSON) -> RunOptions:
    return RunOptions(dialect, segment)


def fed(pipe: Pipeline, data: bytes, rng: random.Random, now_ms: float = 0.0) -> float:
    """Cut anywhere; the time goes on, and what is due goes."""
    place = 0
    while place < len(data):
        size = rng.choice((1, 3, 40, 300, 5_000))
        pipe.feed(data[place : place + size], now_ms)
        place += size
        now_ms += rng.choice((0, 5, 90))
        if (due_ms := pipe.due_ms()) is not None and due_ms <= now_ms:
            pipe.tick(now_ms)
    return now_ms


@pytest.mark.parametrize("segment", MODES, ids=lambda segment: f"{segment.mode}-{segment.max_bytes}")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_texts_are_the_providers_however_they_come(sample: Sample, segment: SegmentOptions) -> None:
    """Answer and reasoning are equal to the character, and the stream is complete."""
    pipe = pipeline(options(segment, sample.dialect))

    now_ms = fed(pipe, sample.chunks, random.Random(sample.name))
    end = pipe.close(now_ms)

    said = payloads(taken(pipe))
    assert (sample.text, sample.reasoning) == texts(said)
    assert end is not None
    assert end.reason is EndReason.COMPLETE
    assert pipe.text.count.fields(1 << 30)["bytes"] == len(sample.text.encode())


@pytest.mark.parametrize("segment", MODES, ids=lambda segment: f"{segment.mode}-{segment.max_bytes}")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_another_gateway_goes_on_from_any_batch(sample: Sample, segment: SegmentOptions) -> None:
    """The producer is cut at random moments: only batches that were taken count, and nothing is lost or repeated."""
    for seed in SEEDS:
        rng = random.Random(f"{sample.name} {seed}")
        in_log: list[Batch] = []
        offset, state, hands = 0, b"", 0
        while True:
            hands += 1
            pipe = pipeline(options(segment, sample.dialect), now_ms=rng.uniform(0, 1e6), offset=offset, state=state)
            stop = rng.randint(1, len(sample.chunks) // 2) if hands < 6 else len(sample.chunks)
            now_ms = fed(pipe, sample.chunks[offset : offset + stop], rng, 1e6)
            is_last = offset + stop >= len(sample.chunks)
            if is_last:
                pipe.close(now_ms)
            batches = taken(pipe)
            if not is_last:
                batches = batches[: rng.randint(0, len(batches))]
            in_log += batches
            if is_last:
                break
            if batches:
                offset, state = batches[-1].input_offset, batches[-1].state

        assert (sample.text, sample.reasoning) == texts(payloads(in_log)), f"seed {seed}"


def test_one_huge_line_is_cut_into_batches_that_others_can_go_on_from() -> None:
    """A line far beyond a batch: who goes on in the middle of it drops what is in the log already."""
    text = "".join(f"word {number} ünd 日本。" for number in range(6_000))
    data = json.dumps({"thinking": "hm", "text": text}).encode() + b'\n{"event":"end"}\n'
    first = pipeline(options(SegmentOptions()))
    first.feed(data, 0.0)
    batches = taken(first)
    in_log = batches[:3]
    assert len(batches) > 20

    second = pipeline(options(SegmentOptions()), offset=in_log[-1].input_offset, state=in_log[-1].state)
    second.feed(data[in_log[-1].input_offset :], 0.0)
    second.close(0.0)

    assert (text, "hm") == texts(payloads([*in_log, *taken(second)]))


def test_a_flood_of_tiny_items_never_overfills_a_batch() -> None:
    """128 messages are what one append takes."""
    data = b'{"data":{}}\n{"tool":{}}\n{"text":"a b c d e f "}\n' * 2_000
    pipe = pipeline(options(SegmentOptions(tokens=1, first_immediately=False)))

    pipe.feed(data, 0.0)

    sizes = [len(batch.items) for batch in taken(pipe)]
    assert sum(sizes) > 10_000
    assert max(sizes) <= 128
    assert min(sizes[:-1]) >= SEAL_ITEMS


def test_a_stretch_of_thinking_ends_with_its_duration() -> None:
    """Also when another gateway goes on in the middle of it; text and tools end it."""
    first = pipeline(options(SegmentOptions(SegmentMode.RAW)), now_ms=1_000)
    first.feed(b'{"thinking":"a"}\n', 1_000)
    [batch] = taken(first)
    first.feed(b'{"thinking":"b"}\n', 1_400)
    [batch] = taken(first)
    second = pipeline(
        options(SegmentOptions(SegmentMode.RAW)), now_ms=9_000, offset=batch.input_offset, state=batch.state
    )

    second.feed(b'{"text":"c"}\n{"thinking":"d"}\n', 9_100)
    second.close(9_250)

    said = payloads(taken(second))
    assert [("thinking", 500), ("delta", None), ("thinking", None), ("thinking", 150)] == [
        (payload["kind"], payload.get("duration_ms")) for payload in said
    ]
    assert said[0] == {"kind": "thinking", "run": RUN, "text": "", "duration_ms": 500, "done": True}
    assert second.thinking_ms == 650


def test_tools_and_data_keep_their_place_among_the_text() -> None:
    """What the segmenter held goes before them."""
    pipe = pipeline(options(SegmentOptions(first_immediately=False)))

    pipe.feed(b'{"text":"before"}\n{"tool":{"id":"t1"}}\n{"text":"between"}\n{"data":{"x":1}}\n', 0.0)
    pipe.close(0.0)

    batches = taken(pipe)
    assert ["delta", "tool", "delta", "data"] == [payload["kind"] for payload in payloads(batches)]
    classes = [item.cls for batch in batches for item in batch.items]
    assert [EntryClass.DELTA, EntryClass.TOOL, EntryClass.DELTA, EntryClass.OTHER] == classes


def test_items_are_canonical() -> None:
    """The same items as if their payloads had come by a push."""
    pipe = pipeline(options(SegmentOptions(SegmentMode.STRUCTURE)))
    pipe.feed(b'{"thinking":"h\\u00fcm","text":"Say \\"x\\":\\n```py\\nprint(1)\\n```\\nDone."}\n', 0.0)
    pipe.feed(b'{"tool":{"id":"t"},"data":{"a":[1]}}\n', 0.0)
    pipe.close(5.0)

    items = [item for batch in taken(pipe) for item in batch.items]

    assert {EntryClass.DELTA, EntryClass.THINKING, EntryClass.CODE, EntryClass.TOOL, EntryClass.OTHER} <= {
        item.cls for item in items
    }
    for item in items:
        assert make_item(json.loads(item.body + b"}")) == item


def test_a_malformed_line_ends_it_after_what_was_good() -> None:
    """The reason names the line."""
    pipe = pipeline(options(SegmentOptions()))

    pipe.feed(b'{"text":"good"}\n{"text":\n{"text":"never"}\n', 0.0)
    end = pipe.close(0.0)

    assert ("good", "") == texts(payloads(taken(pipe)))
    assert end is not None
    assert end.reason is EndReason.FAILED
    assert "line 2" in (end.problem or "")


def test_single_tokens_are_held_and_go_on_elsewhere() -> None:
    """A state without items holds what no segment has yet."""
    start = RunOptions(None, SegmentOptions(tokens=3, first_immediately=False))
    first = pipeline(start)
    first.feed_tokens("one ", 0.0, is_thinking=False)
    assert not first.has_batch
    progress = first.take_progress()
    second = pipeline(start, offset=progress.input_offset, state=progress.state)

    second.feed_tokens("two three four", 0.0, is_thinking=False)
    second.settle(0.0)

    assert ("one two three four", "") == texts(payloads(taken(second)))
    assert progress.input_offset == 4
    assert progress.items == ()


def test_a_megabyte_in_one_line_is_handled_in_time() -> None:
    """Linear in its length."""
    data = json.dumps({"text": "word " * 200_000}).encode() + b"\n"
    pipe = pipeline(options(SegmentOptions()))
    began = time.process_time()

    pipe.feed(data, 0.0)

    assert time.process_time() - began < 3
    assert sum(len(batch.items) for batch in taken(pipe)) > 10_000
