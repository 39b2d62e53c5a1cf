"""Sample streams in a provider's chunk format, with the texts they carry. Read by the demo and the tests."""

from dataclasses import dataclass
from importlib.resources import files

LONG_ANSWER = "long-answer"
"""Code, tables, emoji, combining marks, six scripts, two of them right to left."""
REASONED_ANSWER = "reasoned-answer"
"""Reasoning first, then a short answer."""
SAMPLES = (LONG_ANSWER, REASONED_ANSWER)


@dataclass(frozen=True, slots=True)
class Sample:
    """`chunks` is the stream (dialect `openai`); `text` and `reasoning` are what it says."""

    name: str
    chunks: bytes
    text: str
    reasoning: str


def load_sample(name: str) -> Sample:
    """Raises FileNotFoundError for a name that is not in SAMPLES."""
    folder = files(__package__ or "gateway.samples")
    thinking = folder / f"{name}.thinking.txt"
    return Sample(
        name,
        (folder / f"{name}.jsonl").read_bytes(),
        (folder / f"{name}.md").read_bytes().decode(),
        thinking.read_bytes().decode() if thinking.is_file() else "",
    )


__all__ = ["LONG_ANSWER", "REASONED_ANSWER", "SAMPLES", "Sample", "load_sample"]
