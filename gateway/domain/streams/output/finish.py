"""How a run ended and what it cost, in words that every output dialect has. Providers' own words are many."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class Outcome(StrEnum):
    """What a reader must know of `run_end.reason`."""

    DONE = "done"
    CUT_SHORT = "cut_short"
    """The provider's stream broke off: the text is good but not whole."""
    STOPPED = "stopped"
    """By a user or the application."""
    FAILED = "failed"


class Finish(StrEnum):
    """Why a model stopped that was done."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens. `input` and `output` are totals; `reasoning` and `cached` are parts of them. None: not told."""

    input: int | None
    output: int | None
    reasoning: int | None
    cached: int | None

    @property
    def total(self) -> int | None:
        return None if self.input is None or self.output is None else self.input + self.output


_OUTCOMES: Final = {
    "complete": Outcome.DONE,
    "incomplete": Outcome.CUT_SHORT,
    "interrupted": Outcome.STOPPED,
    "cancelled": Outcome.STOPPED,
}
_FINISHES: Final = {
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "max_output_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "tool_calls": Finish.TOOL_CALLS,
    "tool_use": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "content_filter": Finish.CONTENT_FILTER,
    "refusal": Finish.CONTENT_FILTER,
}
_PROBLEMS: Final = {
    "failed": "the provider's stream failed",
    "incomplete": "the provider's stream broke off",
    "abandoned": "the producer fell silent and did not come back",
}


def reason_of(end: Mapping[str, Any]) -> str:
    reason = end.get("reason")
    return reason if isinstance(reason, str) else "failed"


def outcome_of(end: Mapping[str, Any]) -> Outcome:
    """`failed`, `abandoned` and whatever is not known yet are failures."""
    return _OUTCOMES.get(reason_of(end), Outcome.FAILED)


def finish_of(end: Mapping[str, Any]) -> Finish:
    return _FINISHES.get(str(end.get("finish_reason")), Finish.STOP)


def problem_of(end: Mapping[str, Any]) -> str:
    """A sentence for a person; never empty."""
    problem = end.get("problem")
    if isinstance(problem, str) and problem:
        return problem
    reason = reason_of(end)
    return _PROBLEMS.get(reason, f"the run ended as {reason[:32]}")


def usage_of(end: Mapping[str, Any]) -> Usage | None:
    """Of OpenAI's names and Anthropic's. None: nothing was told."""
    usage = end.get("usage")
    if not isinstance(usage, dict):
        return None
    given = _first(usage, "prompt_tokens", "input_tokens")
    cached = _detail(usage, "cached_tokens", "prompt_tokens_details", "input_tokens_details")
    # Anthropic counts what its cache read or took in beside the input, the others within it.
    read, written = _first(usage, "cache_read_input_tokens"), _first(usage, "cache_creation_input_tokens")
    if given is not None:
        given += (read or 0) + (written or 0)
    output = _first(usage, "completion_tokens", "output_tokens")
    reasoning = _detail(usage, "reasoning_tokens", "completion_tokens_details", "output_tokens_details")
    result = Usage(given, output, reasoning, read if cached is None else cached)
    return None if given is output is None else result


def _first(fields: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = fields.get(name)
        if type(value) is int and 0 <= value < 2**53:
            return value
    return None


def _detail(usage: Mapping[str, Any], name: str, *groups: str) -> int | None:
    for group in groups:
        details = usage.get(group)
        if isinstance(details, dict) and (value := _first(details, name)) is not None:
            return value
    return None


__all__ = ["Finish", "Outcome", "Usage", "finish_of", "outcome_of", "problem_of", "reason_of", "usage_of"]
