"""Random texts, feeds, ticks and moves with the segments that the gateway makes of them; the JavaScript SDK is held
against the file. `python -m tests.unit.domain.streams.segment.cases` writes it anew; a test fails while it is old.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

from gateway.domain.streams.segment import Segment, Segmenter, SegmentMode, SegmentOptions
from tests.unit.domain.streams.segment.texts import MARKDOWN, SHARDS, cut_text

FILE = Path(__file__).parents[5] / "sdk/conformance/vectors/segmenter_random.json"
SEED, COUNT = 5, 400
_PATTERNS = (
    r"\n",
    r"[.!?]\s*",
    r"(?=```)",
    r"a|\s+",
    r"(?m)^#.*\n",
    r"[\s\S]",
    r"\w+(?!\w)",
    "\u200d",
    r"\b\w",
    r"\d+",
)
_PROSE = "Dr. Li paid 3.50 EUR, e.g. twice. She said: “Fine!” Then (see no. 4) 你好。今天很好！ Ende.\n\nNext line"
_WAITS = (0, 0, 1, 20, 61, 1000)


def _options(rng: random.Random) -> dict[str, Any]:
    mode = rng.choice(list(SegmentMode))
    options: dict[str, Any] = {"mode": mode.value, "max_bytes": rng.choice([16, 17, 24, 64, 1024])}
    if mode is SegmentMode.TOKENS:
        options["tokens"] = rng.choice([1, 2, 3, 15])
    if mode is SegmentMode.PATTERN:
        options["pattern"] = rng.choice(_PATTERNS)
    options["max_delay_ms"] = rng.choice([0, 1, 60])
    options["first_immediately"] = rng.random() < 0.5
    return options


def _text(rng: random.Random) -> str:
    words = _PROSE.split(" ")
    pieces = rng.choice([SHARDS, MARKDOWN, [word + " " for word in words] + words, SHARDS + MARKDOWN])
    return "".join(rng.choices(pieces, k=rng.randint(0, 40)))


def _json(segment: Segment) -> Any:
    if not segment.is_code:
        return segment.text
    fields = segment.fields
    return [segment.text, fields["block"], fields["language"], fields["part"], fields["last"]]


def case(rng: random.Random) -> dict[str, Any]:
    options, text = _options(rng), _text(rng)
    feeds = cut_text(text, [rng.randrange(2_000) for _ in range(rng.randint(0, 12))])
    made = SegmentOptions(**options)
    segmenter, now = Segmenter(made), 0
    steps: list[list[Any]] = []
    for feed in feeds:
        now += rng.choice(_WAITS)
        steps.append(["feed", now, feed, [_json(segment) for segment in segmenter.feed(feed, now)]])
        step = rng.choice(["", "", "tick", "tick", "flush", "move"])
        if step == "tick":
            now += rng.choice(_WAITS)
            steps.append(["tick", now, "", [_json(segment) for segment in segmenter.tick(now)]])
        elif step == "flush":
            steps.append(["flush", now, "", [_json(segment) for segment in segmenter.flush()]])
        elif step == "move":
            segmenter = Segmenter(made, segmenter.save())
            steps.append(["move", now, "", []])
    steps.append(["flush", now, "", [_json(segment) for segment in segmenter.flush()]])
    return {"options": options, "steps": steps}


def cases(seed: int, count: int) -> str:
    rng = random.Random(seed)
    about = "What the gateway's segmenter makes of random texts: steps of [what, now_ms, text, segments]."
    lines = ",\n".join(json.dumps(case(rng), ensure_ascii=False, separators=(",", ":")) for _ in range(count))
    return f'{{"about":{json.dumps(about)},"cases":[\n{lines}\n]}}\n'


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.write(cases(int(sys.argv[1]), int(sys.argv[2])))
    else:
        FILE.write_text(cases(SEED, COUNT), "utf-8")
