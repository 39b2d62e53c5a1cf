"""The catalogue of frames: its examples are what it says, and it knows every kind that the code has."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tools.api.frame_docs import asyncapi, kind_of
from tools.api.frames import CLIENT_CONTROLS, SERVER_CONTROLS, TEXT_FRAMES, check_frame, envelope

ROOT = Path(__file__).resolve().parents[3]
FROM_GATEWAY = [envelope(f, "text") for f in TEXT_FRAMES.values()] + [
    envelope(f, "control") for f in SERVER_CONTROLS.values()
]


@pytest.mark.parametrize("frame", FROM_GATEWAY, ids=lambda frame: frame["payload"]["kind"])
def test_examples_are_frames(frame: dict[str, Any]) -> None:
    check_frame(json.loads(json.dumps(frame)))


def test_every_example_of_the_page_is_checked() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    examples = [json.loads(block) for block in re.findall(r"```json\n(.*?)\n```", page, re.DOTALL)]

    for example in examples:
        if "session_id" in example:
            check_frame(example)

    kinds = {example["payload"]["kind"] for example in examples if "kind" in example.get("payload", {})}
    assert {kind_of(frame) for frame in (*TEXT_FRAMES, *SERVER_CONTROLS, *CLIENT_CONTROLS)} <= kinds


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "text", "seq": 1, "payload": {"kind": "delta", "run": "r", "text": "x"}},
        {"type": "text", "seq": 1, "payload": {"kind": "delta", "run": "r", "text": "x", "at": 0, "more": 1}},
        {"type": "control", "payload": {"kind": "news"}},
        {"type": "control", "more": 1, "payload": {"kind": "superseded"}},
    ],
)
def test_what_the_docs_do_not_have_is_an_error(frame: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        check_frame(frame)


def test_kinds_of_applications_pass() -> None:
    check_frame({"type": "text", "seq": 1, "payload": {"kind": "weather", "wind": 3}})


def test_asyncapi_names_every_schema_that_it_refers_to() -> None:
    document = yaml.safe_load(asyncapi())
    text = json.dumps(document)

    missing = {
        name
        for name in re.findall(r"#/components/schemas/(\w+)", text)
        if name not in document["components"]["schemas"]
    }

    assert not missing
    assert set(document["channels"]["session"]["messages"]) == set(document["components"]["messages"])
