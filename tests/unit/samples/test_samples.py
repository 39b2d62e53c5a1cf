"""Sample streams: what the demo shows is hard to cut, and says what its texts say."""

import regex

from gateway.domain.streams.dialects import OpenAiDialect
from gateway.domain.streams.pieces import EndReason, TextPiece, ThinkingPiece
from gateway.samples import LONG_ANSWER, REASONED_ANSWER, SAMPLES, load_dialect_samples, load_sample
from gateway.samples.make import stream, streams_in_all_dialects


def read(name: str) -> tuple[list[str], str, EndReason]:
    dialect = OpenAiDialect()
    pieces = dialect.feed(load_sample(name).chunks)
    rest, end = dialect.close()
    texts = [piece.text for piece in [*pieces, *rest] if isinstance(piece, TextPiece)]
    return texts, "".join(piece.text for piece in [*pieces, *rest] if isinstance(piece, ThinkingPiece)), end.reason


def test_the_streams_are_what_their_maker_makes() -> None:
    for name in SAMPLES:
        assert stream(name) == load_sample(name).chunks


def test_the_streams_in_all_dialects_are_what_their_maker_makes() -> None:
    made = streams_in_all_dialects()
    stored = {sample.name: sample.chunks for sample in load_dialect_samples()}

    assert made.keys() == stored.keys() - {"tool-answer.md"}
    assert all(stored[name] == data for name, data in made.items())


def test_the_streams_say_what_the_texts_say() -> None:
    for name in SAMPLES:
        sample = load_sample(name)
        texts, reasoning, reason = read(name)

        assert "".join(texts) == sample.text
        assert reasoning == sample.reasoning
        assert reason is EndReason.COMPLETE


def test_the_long_answer_is_cut_inside_graphemes() -> None:
    text = load_sample(LONG_ANSWER).text
    edges = {match.end() for match in regex.finditer(r"\X", text)}
    place, inside = 0, 0
    for part in read(LONG_ANSWER)[0]:
        place += len(part)
        inside += place not in edges

    assert inside >= 10


def test_the_long_answer_fits_into_a_log() -> None:
    sample = load_sample(LONG_ANSWER)

    assert 6_000 <= len(sample.text.encode()) <= 10_000
    assert sample.chunks.count(b"\n") < 1_000


def test_the_reasoned_answer_reasons_first() -> None:
    assert load_sample(REASONED_ANSWER).reasoning
