"""The vectors that every implementation and both SDKs are held against."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.streams.segment import Segment, SegmentMode, SegmentOptions
from tests.unit.domain.streams.segment.texts import run

FILE = Path(__file__).parents[5] / "sdk/conformance/vectors/segmenter.json"
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["vectors"]


def as_json(segment: Segment) -> dict[str, Any]:
    code = {"is_code": True, "fields": dict(segment.fields)} if segment.is_code else {}
    return {"text": segment.text} | code


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vector(vector: dict[str, Any]) -> None:
    options = SegmentOptions(**vector["options"])
    text = "".join(vector["input"])

    for feeds in (vector["input"], [text], list(text)):
        assert [as_json(segment) for segment in run(options, feeds)] == vector["segments"]


def test_the_vectors_are_whole() -> None:
    for vector in VECTORS:
        assert "".join(segment["text"] for segment in vector["segments"]) == "".join(vector["input"])
    assert {vector["options"]["mode"] for vector in VECTORS} == set(SegmentMode) - {SegmentMode.RAW}
