"""Sample streams in a provider's chunk format, with the texts they carry. Read by the demo and the tests."""

from dataclasses import dataclass
from importlib.resources import files

from gateway.domain.streams.dialects import DialectName

LONG_ANSWER = "long-answer"
"""Code, tables, emoji, combining marks, six scripts, two of them right to left."""
REASONED_ANSWER = "reasoned-answer"
"""Reasoning first, then a short answer."""
SAMPLES = (LONG_ANSWER, REASONED_ANSWER)
"""Chat-completion chunks, long enough to look at."""
TOOL_ANSWER = "tool-answer"
"""A short answer with reasoning and a tool call, once in each format."""
_PACKAGE = "gateway.samples"
_ENDINGS = {
    "md": DialectName.TEXT,
    "ndjson": DialectName.NDJSON,
    "openai.sse": DialectName.OPENAI,
    "responses.sse": DialectName.OPENAI,
    "anthropic.sse": DialectName.ANTHROPIC,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """`chunks` is the stream; `text` and `reasoning` are what it says."""

    name: str
    chunks: bytes
    text: str
    reasoning: str
    dialect: DialectName = DialectName.OPENAI


def load_sample(name: str) -> Sample:
    """Raises FileNotFoundError for a name that is not in SAMPLES."""
    return Sample(name, _read(f"{name}.jsonl"), _read(f"{name}.md").decode(), _reasoning(name))


def load_dialect_samples() -> list[Sample]:
    """One for each format, named after its file; plain text has no reasoning."""
    text, reasoning = _read(f"{TOOL_ANSWER}.md").decode(), _reasoning(TOOL_ANSWER)
    return [
        Sample(file, _read(file), text, "" if dialect is DialectName.TEXT else reasoning, dialect)
        for file, dialect in ((f"{TOOL_ANSWER}.{ending}", dialect) for ending, dialect in _ENDINGS.items())
    ]


def _reasoning(name: str) -> str:
    thinking = files(_PACKAGE) / f"{name}.thinking.txt"
    return thinking.read_bytes().decode() if thinking.is_file() else ""


def _read(file: str) -> bytes:
    return (files(_PACKAGE) / file).read_bytes()


__all__ = ["LONG_ANSWER", "REASONED_ANSWER", "SAMPLES", "TOOL_ANSWER", "Sample", "load_dialect_samples", "load_sample"]
