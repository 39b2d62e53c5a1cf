"""The demo's recordings: what a reader must end up with, and files that are none."""

from pathlib import Path

import pytest

from gateway.app.demo.streams import from_file, samples
from gateway.domain.operator_error import OperatorError
from gateway.domain.streams.dialects import DialectName


def test_the_samples_have_text_and_one_has_reasoning() -> None:
    streams = samples()

    assert len(streams) >= 2
    assert all(stream.text for stream in streams)
    assert any(stream.reasoning for stream in streams)


def test_a_stream_without_text_is_one(tmp_path: Path) -> None:
    file = tmp_path / "call.jsonl"
    file.write_text('{"choices":[{"delta":{"tool_calls":[]},"finish_reason":"tool_calls"}]}\n', encoding="utf-8")

    assert from_file(file, DialectName.OPENAI).text == ""


@pytest.mark.parametrize("content", [None, "no JSON\n"])
def test_a_file_that_is_no_stream_is_told_in_a_line(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "broken.jsonl"
    if content is not None:
        file.write_text(content, encoding="utf-8")

    with pytest.raises(OperatorError, match="give"):
        from_file(file, DialectName.OPENAI)
