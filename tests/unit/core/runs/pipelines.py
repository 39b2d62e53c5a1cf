"""Pipelines without hooks and clock, and what their batches say: for the tests of the ingest of runs."""

import json
from collections.abc import Iterable
from typing import Any

from gateway.core.runs.batch import Batch
from gateway.core.runs.items import RunItems
from gateway.core.runs.pipeline import Pipeline
from gateway.core.runs.run_state import decode_state
from gateway.core.runs.track import CountedText, TrackState, TrackText
from gateway.domain.streams.dialects import open_dialect
from gateway.domain.streams.run_options import RunOptions

RUN = "r7"


def pipeline(options: RunOptions, *, now_ms: float = 0.0, offset: int = 0, state: bytes = b"") -> Pipeline:
    """A fresh one, or one that goes on from what a batch said."""
    saved = decode_state(state) if state else None
    text = TrackText(options.segment, CountedText(), None, None if saved is None else TrackState(*saved.text))
    thinking = TrackText(
        options.thinking_segment, CountedText(), None, None if saved is None else TrackState(*saved.thinking)
    )
    dialect = None
    if options.dialect is not None:
        dialect = open_dialect(options.dialect, None if saved is None else saved.dialect, offset)
    return Pipeline(
        RunItems(RUN, 64 * 1024), text, thinking, dialect=dialect, now_ms=now_ms, offset=offset, state=saved
    )


def payloads(batches: Iterable[Batch]) -> list[dict[str, Any]]:
    return [json.loads(item.body + b"}") for batch in batches for item in batch.items]


def texts(said: Iterable[dict[str, Any]]) -> tuple[str, str]:
    """(answer, reasoning)"""
    said = list(said)
    answer = "".join(payload["text"] for payload in said if payload["kind"] in ("delta", "code_block"))
    return answer, "".join(payload["text"] for payload in said if payload["kind"] == "thinking")


def taken(pipe: Pipeline) -> list[Batch]:
    """All that is to be appended now."""
    batches = []
    while pipe.has_batch:
        batch = pipe.take_batch()
        pipe.sent(batch)
        batches.append(batch)
    return batches
