"""What a library posts becomes an input: the last message, and the run that is to answer it."""

from typing import Any

import pytest

from gateway.domain.streams.output import OutputFormat
from gateway.domain.streams.output.prompt import BadPrompt, read_prompt

OPENAI = {
    "model": "any",
    "stream": True,
    "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
}
AI_SDK: dict[str, Any] = {
    "id": "chat",
    "trigger": "submit-message",
    "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]}],
}
AG_UI = {"threadId": "t", "runId": "run-7", "messages": [{"id": "m1", "role": "user", "content": "Hi"}], "tools": []}
BODIES = {OutputFormat.OPENAI: OPENAI, OutputFormat.AI_SDK: AI_SDK, OutputFormat.AG_UI: AG_UI}


@pytest.mark.parametrize("output_format", BODIES)
def test_the_last_message_is_the_input(output_format: OutputFormat) -> None:
    body = BODIES[output_format]

    prompt = read_prompt(output_format, body, "fresh")

    assert prompt.payload["text"] == "Hi"
    assert prompt.payload["message"] == body["messages"][-1]
    assert prompt.payload["run"] == prompt.run
    assert prompt.payload["request"] == {name: value for name, value in body.items() if name != "messages"}


@pytest.mark.parametrize(
    ("output_format", "more", "run"),
    [
        (OutputFormat.OPENAI, {}, "run-fresh"),
        (OutputFormat.AI_SDK, {}, "run-m1"),
        (OutputFormat.AI_SDK, {"trigger": "regenerate-message"}, "run-fresh"),
        (OutputFormat.AI_SDK, {"messageId": "m1"}, "run-fresh"),
        (OutputFormat.AG_UI, {}, "run-7"),
        (OutputFormat.AG_UI, {"runId": None}, "run-fresh"),
    ],
)
def test_the_run_is_the_same_for_the_same_request(output_format: OutputFormat, more: Any, run: str) -> None:
    """Where the library names it; another answer to the same message is another run."""
    assert read_prompt(output_format, {**BODIES[output_format], **more}, "fresh").run == run


def test_a_tools_output_has_no_text() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "tool", "content": "42", "toolCallId": "c1"}]

    prompt = read_prompt(OutputFormat.AG_UI, {**AG_UI, "messages": messages}, "fresh")

    assert (prompt.payload["text"], prompt.payload["message"]) == ("", messages[-1])


def test_a_message_with_outputs_of_tools_is_gone_on_with() -> None:
    """The AI SDK's; another library's answer is a message of its own."""
    messages = [*AI_SDK["messages"], {"id": "run-m1", "role": "assistant", "parts": []}]

    assert read_prompt(OutputFormat.AI_SDK, {**AI_SDK, "messages": messages}, "fresh").continues == "run-m1"
    assert read_prompt(OutputFormat.AI_SDK, AI_SDK, "fresh").continues is None
    assert read_prompt(OutputFormat.OPENAI, {**OPENAI, "messages": messages}, "fresh").continues is None


def test_answers_to_interrupts_need_no_message() -> None:
    resume = [{"interruptId": "a1", "status": "resolved"}]

    prompt = read_prompt(OutputFormat.AG_UI, {**AG_UI, "messages": [], "resume": resume}, "fresh")

    assert prompt.payload["request"]["resume"] == resume
    assert prompt.answers == [("a1", None)]


def test_only_what_is_resolved_is_an_answer() -> None:
    resume: Any = [
        {"interruptId": "a1", "status": "resolved", "payload": "yes"},
        {"interruptId": "a2", "status": "cancelled"},
        {"interruptId": 3, "status": "resolved"},
        "a4",
    ]

    assert read_prompt(OutputFormat.AG_UI, {**AG_UI, "resume": resume}, "fresh").answers == [("a1", "yes")]
    assert read_prompt(OutputFormat.AG_UI, {**AG_UI, "resume": "a1"}, "fresh").answers == []


@pytest.mark.parametrize(
    ("output_format", "more"),
    [
        (OutputFormat.OPENAI, {"stream": False}),
        (OutputFormat.OPENAI, {"stream": None}),
        (OutputFormat.AI_SDK, {"messages": None}),
        (OutputFormat.AI_SDK, {"messages": ["Hi"]}),
        (OutputFormat.AG_UI, {"messages": []}),
        (OutputFormat.AG_UI, {"runId": 7}),
        (OutputFormat.AG_UI, {"runId": "x" * 129}),
        (OutputFormat.AG_UI, {"runId": ""}),
    ],
)
def test_a_body_that_asks_nothing_is_refused(output_format: OutputFormat, more: Any) -> None:
    with pytest.raises(BadPrompt):
        read_prompt(output_format, {**BODIES[output_format], **more}, "fresh")
