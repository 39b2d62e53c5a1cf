"""How each dialect tells each end of a run, and what it cost."""

from typing import Any

import pytest

from gateway.domain.streams.output import OutputFormat
from gateway.domain.streams.output.finish import Usage, usage_of
from tests.unit.domain.streams.output.logs import Log
from tests.unit.domain.streams.output.readers import AgUiReader, OpenAiReader, Reader, reader_of
from tests.unit.domain.streams.output.test_restart import FORMATS, whole

ENDS = {
    "complete": ("stop", "stop", "success"),
    "incomplete": ("length", "other", "error:incomplete"),
    "failed": ("error:failed", "error:no key", "error:failed"),
    "interrupted": ("stop", "interrupted", "cancelled"),
    "cancelled": ("stop", "interrupted", "cancelled"),
    "abandoned": (
        "error:abandoned",
        "error:the producer fell silent and did not come back",
        "error:abandoned",
    ),
    "invented_later": (
        "error:invented_later",
        "error:the run ended as invented_later",
        "error:invented_later",
    ),
}


def ended(output_format: OutputFormat, **end: Any) -> Reader:
    reader = reader_of(output_format)
    delta = {"kind": "delta", "run": "r1", "text": "Hello"}
    for event in whole(
        output_format, Log({"kind": "run_start", "run": "r1"}, delta, {"kind": "run_end", "run": "r1", **end})
    ):
        reader.take(event)
    return reader


@pytest.mark.parametrize("reason", ENDS)
@pytest.mark.parametrize("output_format", FORMATS)
def test_each_reason_ends_the_answer(output_format: OutputFormat, reason: str) -> None:
    """Text that came before it stays."""
    problem = {"problem": "no key"} if reason == "failed" else {}

    reader = ended(output_format, reason=reason, **problem)

    assert reader.end == ENDS[reason][FORMATS.index(output_format)]
    assert reader.text == "Hello"


@pytest.mark.parametrize(
    ("finish_reason", "openai", "ai_sdk"),
    [
        ("stop", "stop", "stop"),
        ("end_turn", "stop", "stop"),
        ("max_tokens", "length", "length"),
        ("tool_use", "tool_calls", "tool-calls"),
        ("content_filter", "content_filter", "content-filter"),
        ("something new", "stop", "stop"),
    ],
)
def test_finish_reasons_of_all_providers(finish_reason: str, openai: str, ai_sdk: str) -> None:
    assert ended(OutputFormat.OPENAI, reason="complete", finish_reason=finish_reason).end == openai
    assert ended(OutputFormat.AI_SDK, reason="complete", finish_reason=finish_reason).end == ai_sdk


def test_usage_is_in_the_words_of_the_reader() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 2, "output_tokens": 5}

    openai = ended(OutputFormat.OPENAI, reason="complete", usage=usage)
    ag_ui = ended(OutputFormat.AG_UI, reason="complete", usage=usage)

    assert isinstance(openai, OpenAiReader)
    assert isinstance(ag_ui, AgUiReader)
    assert openai.usage == {
        "prompt_tokens": 42,
        "completion_tokens": 5,
        "total_tokens": 47,
        "prompt_tokens_details": {"cached_tokens": 30},
    }
    assert ag_ui.usage == [{"inputTokens": 42, "outputTokens": 5, "totalTokens": 47, "cachedInputTokens": 30}]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": "many"}, None),
        ({"output_tokens": 3}, Usage(None, 3, None, None)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 8,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 6},
            },
            Usage(9, 8, 6, 4),
        ),
        (
            {"input_tokens": 9, "output_tokens": 8, "output_tokens_details": {"reasoning_tokens": 6}},
            Usage(9, 8, 6, None),
        ),
    ],
)
def test_usage_of_any_provider(usage: Any, expected: Usage | None) -> None:
    assert usage_of({"usage": usage}) == expected
