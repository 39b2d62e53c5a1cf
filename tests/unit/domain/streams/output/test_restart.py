"""A dialect that breaks off after any of its events goes on exactly: same text, same calls, valid for its reader."""

import random
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.streams.output import OutputFormat, Resume, Translator, open_translator
from gateway.samples import load_dialect_samples
from tests.unit.domain.streams.output.logs import SESSION, Frame, Log, control, run_payloads
from tests.unit.domain.streams.output.readers import AgUiReader, Event, Reader, events_of, reader_of

FORMATS = [OutputFormat.OPENAI, OutputFormat.AI_SDK, OutputFormat.AG_UI]
SAMPLES = {sample.name: sample for sample in load_dialect_samples()}
WELCOME = control({"kind": "welcome"}, "")


@cache
def sample_log(name: str) -> Log:
    """The sample's run between and among the messages of another, and things that belong to none."""
    sample = SAMPLES[name]
    log = Log({"kind": "run_start", "run": "other"}, {"kind": "delta", "run": "other", "text": "not ours "})
    for number, payload in enumerate(run_payloads(sample.dialect, sample.chunks)):
        log.append(payload)
        if number % 5 == 4:
            log.append({"kind": "delta", "run": "other", "text": "still not ours "})
    return log


def translate(translator: Translator, frames: Iterable[Frame]) -> list[Event]:
    return [event for frame in frames for event in events_of(translator.take(frame.envelope, frame.cursor))]


def said(reader: Reader) -> tuple[Any, ...]:
    return reader.text, reader.thinking, dict(reader.calls), dict(reader.others), reader.end


def whole(output_format: OutputFormat, log: Log) -> list[Event]:
    return translate(open_translator(output_format, SESSION, "r1"), log.frames())


def read(output_format: OutputFormat, events: Iterable[Event]) -> Reader:
    reader = reader_of(output_format)
    for event in events:
        reader.take(event)
    return reader


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("output_format", FORMATS)
def test_the_text_is_the_runs_text(output_format: OutputFormat, name: str) -> None:
    """Whatever provider it came from."""
    sample = SAMPLES[name]

    reader = read(output_format, whole(output_format, sample_log(name)))

    assert reader.text == sample.text
    assert reader.thinking == sample.reasoning


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("max_bytes", [0, 60, 16_384])
@pytest.mark.parametrize("output_format", FORMATS)
def test_it_goes_on_after_any_event(output_format: OutputFormat, name: str, max_bytes: int) -> None:
    """The rest comes merged differently than the beginning did, as it does after a break."""
    log = sample_log(name)
    events = whole(output_format, log)
    expected = said(read(output_format, events))

    for broken_after in range(1, len(events)):
        got = events[:broken_after]
        last_id = next((event.id for event in reversed(got) if event.id), "")
        resume = Resume.parse(last_id, is_continued=True) if last_id else None
        rest = []
        if resume is None or not resume.is_over:
            translator = open_translator(output_format, SESSION, "r1", resume)
            seq = resume.cursor.seq if resume and resume.cursor else 0
            rest = translate(translator, [WELCOME, *log.frames(seq, max_bytes=max_bytes)])

        assert said(read(output_format, [*got, *rest])) == expected, f"broken after event {broken_after}"


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("output_format", FORMATS)
def test_it_goes_on_from_snapshots(output_format: OutputFormat, name: str) -> None:
    """The log was trimmed meanwhile: text that was there is not told again, and none is left out."""
    log, sample = sample_log(name), SAMPLES[name]
    events = whole(output_format, log)

    for broken_after in range(1, len(events)):
        got = events[:broken_after]
        last_id = next((event.id for event in reversed(got) if event.id), "")
        resume = Resume.parse(last_id, is_continued=True)
        if resume.is_over:
            continue
        assert resume.cursor is None or resume.cursor.seq < log.head
        lost = min(log.head, (resume.cursor.seq if resume.cursor else 0) + 3)
        translator = open_translator(output_format, SESSION, "r1", resume)
        reader = read(output_format, [*got, *translate(translator, log.rebuilt(lost))])

        assert (reader.text, reader.thinking) == (sample.text, sample.reasoning), f"broken after event {broken_after}"
        assert reader.end


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_whole_run_from_snapshots_is_ordinary(output_format: OutputFormat) -> None:
    """A reader that comes when all of the run is below the log."""
    name = "tool-answer.openai.sse"
    log, sample = sample_log(name), SAMPLES[name]
    translator = open_translator(output_format, SESSION, "r1")

    reader = read(output_format, translate(translator, log.rebuilt(log.head)))

    assert (reader.text, reader.thinking) == (sample.text, sample.reasoning)
    assert translator.is_over


@pytest.mark.parametrize("name", SAMPLES)
def test_a_new_request_of_ag_ui_goes_on_in_its_messages(name: str) -> None:
    """With `cursor=` instead of Last-Event-ID: the library verifies each request from RUN_STARTED on."""
    log = sample_log(name)
    events = whole(OutputFormat.AG_UI, log)
    expected = said(read(OutputFormat.AG_UI, events))

    for broken_after in range(1, len(events)):
        reader = AgUiReader()
        for event in events[:broken_after]:
            reader.take(event)
        resume = Resume.parse(events[broken_after - 1].id, is_continued=False)
        if resume.is_over:
            continue
        reader.begin_again()
        translator = open_translator(OutputFormat.AG_UI, SESSION, "r1", resume)
        seq = resume.cursor.seq if resume.cursor else 0
        for event in translate(translator, [WELCOME, *log.frames(seq, max_bytes=16_384)]):
            reader.take(event)

        assert said(reader) == expected, f"broken after event {broken_after}"


_RUN = st.lists(
    st.one_of(
        st.builds(lambda text: {"kind": "delta", "run": "r1", "text": text}, st.text(min_size=1, max_size=9)),
        st.builds(lambda text: {"kind": "thinking", "run": "r1", "text": text}, st.text(min_size=1, max_size=9)),
        st.builds(
            lambda index, key, name, arguments: {
                "kind": "tool",
                "run": "r1",
                "data": {"tool_calls": [
                    {"index": index, "id": key, "function": {"name": name, "arguments": arguments}},
                ]},
            },
            st.integers(0, 2),
            st.sampled_from(["", "call_a", "call_b", "call_c"]),
            st.sampled_from(["", "search"]),
            st.sampled_from(["", "{", '{"q":', '"x"}']),
        ),
        st.builds(
            lambda first, second: {
                "kind": "tool",
                "run": "r1",
                "data": {"tool_calls": [
                    {"index": 0, "function": {"name": first, "arguments": "1"}},
                    {"index": 1, "id": "call_d", "function": {"name": second, "arguments": "2"}},
                    {"function": {"name": "bare", "arguments": "3"}},
                ]},
            },
            st.sampled_from(["", "one"]),
            st.sampled_from(["", "two"]),
        ),
        st.builds(lambda: {"kind": "thinking", "run": "r1", "text": "", "duration_ms": 5, "done": True}),
        st.builds(lambda: {"kind": "data", "run": "r1", "data": {"n": 1}}),
        st.builds(lambda: {"kind": "echo", "payload": {"text": "and?"}}),
        st.builds(lambda: {"kind": "delta", "run": "r2", "text": "another's"}),
    ),
    max_size=14,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(_RUN, st.sampled_from(FORMATS), st.integers(0, 2**32))
def test_any_run_goes_on_after_many_breaks(
    payloads: list[dict[str, Any]], output_format: OutputFormat, seed: int
) -> None:
    """Each request breaks off at a random event, until the run is over."""
    rng = random.Random(seed)
    log = Log({"kind": "run_start", "run": "r1"}, *payloads, {"kind": "run_end", "run": "r1", "reason": "complete"})
    expected = said(read(output_format, whole(output_format, log)))
    reader = reader_of(output_format)
    last_id, is_over = "", False

    for _ in range(200):
        resume = Resume.parse(last_id, is_continued=True) if last_id else None
        if is_over := resume is not None and resume.is_over:
            break
        translator = open_translator(output_format, SESSION, "r1", resume)
        seq = resume.cursor.seq if resume and resume.cursor else 0
        events = translate(translator, [WELCOME, *log.frames(seq, max_bytes=rng.choice([0, 40, 16_384]))])
        # At least as many as are sent without an id, so that each request gets on.
        for event in events[: rng.randint(1, 6) if rng.random() < 0.7 else len(events)]:
            reader.take(event)
            last_id = event.id or last_id

    assert is_over, seed
    assert said(reader) == expected, seed
