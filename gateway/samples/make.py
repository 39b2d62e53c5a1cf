"""Makes the sample streams from the texts beside it: `python -m gateway.samples.make`. Always the same bytes.

The chunks are cut as a tokenizer would, without respect for grapheme clusters: that is what the demo is for.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway.samples import SAMPLES, TOOL_ANSWER
from gateway.samples.formats import CREATED, FORMATS, Answer, dump, grouped

_HERE = Path(__file__).parent
_WORD = re.compile(r"\n+| ?[A-Za-z]+| ?\d+| +|[^\sA-Za-z\d]|\s")
_LONGEST_WORD_PIECE = 7
_MOST_TOKENS_A_CHUNK = 4
"""Fast models send several at once; it also keeps a whole sample within the messages that a log retains."""


def tokens(text: str, rng: random.Random) -> Iterator[str]:
    """Words with the space before them, long ones cut; other scripts and symbols one or a few code points at a time."""
    held = ""
    for match in _WORD.finditer(text):
        part = match[0]
        if part.isascii():
            if held:
                yield held
                held = ""
            while len(part) > _LONGEST_WORD_PIECE:
                cut = rng.randint(3, _LONGEST_WORD_PIECE)
                yield part[:cut]
                part = part[cut:]
            yield part
            continue
        held += part
        if rng.random() < 0.6:
            yield held
            held = ""
    if held:
        yield held


def chunks(name: str, answer: str, reasoning: str = "") -> Iterator[dict[str, Any]]:
    """Chat-completion chunks: the role, the reasoning, the answer, a finish_reason, the usage."""
    rng = random.Random(name)  # noqa: S311 - reproducible cuts
    counts = {"reasoning_content": 0, "content": 0}
    yield _chunk(name, {"role": "assistant", "content": ""})
    for field, text in (("reasoning_content", reasoning), ("content", answer)):
        left = list(tokens(text, rng))
        counts[field] = len(left)
        for part in grouped(iter(left), rng, _MOST_TOKENS_A_CHUNK):
            yield _chunk(name, {field: part})
    yield _chunk(name, {}, finish_reason="stop")
    usage: dict[str, Any] = {
        "prompt_tokens": 21,
        "completion_tokens": sum(counts.values()),
        "total_tokens": 21 + sum(counts.values()),
        "completion_tokens_details": {"reasoning_tokens": counts["reasoning_content"]},
    }
    yield _envelope(name) | {"choices": [], "usage": usage}


def _chunk(name: str, delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
    return _envelope(name) | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def _envelope(name: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{name}", "object": "chat.completion.chunk", "created": CREATED, "model": "sample-1"}


def stream(name: str) -> bytes:
    """The whole stream of a sample, one chunk a line."""
    return "".join(dump(chunk) + "\n" for chunk in chunks(name, *_texts(name))).encode()


def streams_in_all_dialects() -> dict[str, bytes]:
    """File name -> the same answer, with reasoning and a tool call, in each format."""
    rng = random.Random(TOOL_ANSWER)  # noqa: S311 - reproducible cuts
    text, reasoning = _texts(TOOL_ANSWER)
    call = dump({"place": "Bibliothèque «Île»", "day": "today", "note": "🕖"})
    parts = [grouped(tokens(it, rng), rng, _MOST_TOKENS_A_CHUNK) for it in (reasoning, text, call)]
    answer = Answer(TOOL_ANSWER, parts[0], parts[1], "opening_hours", parts[2])
    return {f"{TOOL_ANSWER}.{ending}": write(answer) for ending, write in FORMATS.items()}


def _texts(name: str) -> tuple[str, str]:
    """(answer, reasoning)"""
    thinking = _HERE / f"{name}.thinking.txt"
    reasoning = thinking.read_text(encoding="utf-8") if thinking.exists() else ""
    return (_HERE / f"{name}.md").read_text(encoding="utf-8"), reasoning


def main() -> None:
    for name in SAMPLES:
        (_HERE / f"{name}.jsonl").write_bytes(stream(name))
    for file, data in streams_in_all_dialects().items():
        (_HERE / file).write_bytes(data)


if __name__ == "__main__":
    main()
