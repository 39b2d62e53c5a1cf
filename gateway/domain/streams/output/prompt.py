"""What the libraries post when a user says something, as an input for the agent and the run that will answer it. Pure.

They send the whole conversation each time; the agent, who has it, gets the last message and what else was asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.domain.streams.output.dialect import OutputFormat
from gateway.domain.wire.ids import InvalidId, check_id

_RUN_PREFIX: Final = "run-"


@dataclass(frozen=True, slots=True)
class Prompt:
    run: str
    """The answer's: the same one each time the same request is sent, where the library names its requests."""
    payload: Mapping[str, Any]
    """Of the input: `text`, `run`, `format`, `message` (the last one, as it came), `request` (the body without all)."""

    continues: str | None = None
    """The id of the message that the answer goes on with: one whose tools have given their outputs."""

    @property
    def answers(self) -> list[tuple[str, Any]]:
        """(ask, value): what AG-UI's `resume` says of asks that were told as interrupts."""
        entries = self.payload["request"].get("resume")
        return [
            (entry["interruptId"], entry.get("payload"))
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, dict)
            and entry.get("status") == "resolved"
            and isinstance(entry.get("interruptId"), str)
        ]


class BadPrompt(ValueError):
    """Says what is wrong with the body."""


def read_prompt(output_format: OutputFormat, body: Mapping[str, Any], fresh: str) -> Prompt:
    """`fresh`: a name that was not used before, for a request that has none. Raises BadPrompt."""
    if output_format is OutputFormat.OPENAI and body.get("stream") is not True:
        raise BadPrompt("`stream` must be true: an answer is told as it comes")
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise BadPrompt("`messages` must be an array of objects")
    if not messages and not body.get("resume"):
        raise BadPrompt("`messages` is empty: there is nothing to answer")
    last: dict[str, Any] = messages[-1] if messages else {}
    run = _run(output_format, body, last, fresh)
    payload = {
        "text": _text(last) if last.get("role") == "user" else "",
        "run": run,
        "format": output_format.value,
        "message": last,
        "request": {name: value for name, value in body.items() if name != "messages"},
    }
    is_going_on = output_format is OutputFormat.AI_SDK and last.get("role") == "assistant"
    continues = last.get("id") if is_going_on else None
    return Prompt(run, payload, continues if isinstance(continues, str) else None)


def _run(output_format: OutputFormat, body: Mapping[str, Any], last: Mapping[str, Any], fresh: str) -> str:
    named: Any = None
    if output_format is OutputFormat.AG_UI:
        named = body.get("runId")
    elif output_format is OutputFormat.AI_SDK and last.get("role") == "user" and isinstance(last.get("id"), str):
        # Another answer to the same message, or to an edited one (`messageId`), is another run.
        is_again = body.get("trigger") == "regenerate-message" or body.get("messageId") is not None
        named = None if is_again else f"{_RUN_PREFIX}{last['id']}"
    if named is None:
        return f"{_RUN_PREFIX}{fresh}"
    try:
        return check_id(named, "the run's id") if isinstance(named, str) else _refuse_run()
    except InvalidId as exc:
        raise BadPrompt(str(exc)) from None


def _refuse_run() -> str:
    raise BadPrompt("`runId` must be a string")


def _text(message: Mapping[str, Any]) -> str:
    """Of its text parts, in either spelling."""
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


__all__ = ["BadPrompt", "Prompt", "read_prompt"]
