"""What providers said: our own samples, and recorded streams beside the repository where there are any."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from gateway.domain.streams.dialects import DialectName
from gateway.samples import LONG_ANSWER, REASONED_ANSWER, load_dialect_samples, load_sample

SHARED = Path(__file__).parents[4] / "shared" / "llm-streams"
"""Not part of the repository; a name begins with its provider."""
OPTIONS: dict[str, dict[str, str]] = {
    "tokens": {"segment": "tokens"},
    "sentence": {"segment": "sentence"},
    "structure": {"segment": "structure"},
    "pattern": {"segment": "pattern", "pattern": r"[.!?]\s|\n"},
    "raw": {"segment": "raw"},
    "tight": {"segment": "tokens", "tokens": "2", "max_bytes": "16", "max_delay_ms": "5", "first": "0"},
}


@dataclass(frozen=True, slots=True)
class Recording:
    name: str
    dialect: str
    data: bytes
    text: str
    reasoning: str


def own() -> list[Recording]:
    samples = [load_sample(LONG_ANSWER), load_sample(REASONED_ANSWER), *load_dialect_samples()]
    return [
        Recording(sample.name, sample.dialect.value, sample.chunks, sample.text, sample.reasoning) for sample in samples
    ]


def shared() -> list[Recording]:
    return [_recorded(file) for file in sorted(SHARED.glob("*.jsonl"))]


def _recorded(file: Path) -> Recording:
    dialect = DialectName.ANTHROPIC if file.name.startswith("anthropic") else DialectName.OPENAI
    text, reasoning = (
        path.read_bytes().decode() if path.is_file() else ""
        for path in (file.with_suffix(".text"), file.with_suffix(".reasoning"))
    )
    return Recording(file.stem, dialect.value, file.read_bytes(), text, reasoning)


async def _nothing() -> None:
    pass


async def chunks(
    recording: Recording,
    rng: random.Random,
    pause: Callable[[], Awaitable[None]],
    *,
    at: int | None = None,
    then: Callable[[], Awaitable[None]] = _nothing,
) -> AsyncIterator[bytes]:
    """The stream in parts of any size; once `at` bytes were given, `then` happens."""
    place, size = 0, len(recording.data)
    largest = max(8, size // 40)
    while place < size:
        end = min(size, place + rng.randint(1, largest))
        if at is not None and place < at <= end:
            end = at
        yield recording.data[place:end]
        place = end
        await pause()
        if at is not None and place == at:
            await then()
            at = None
