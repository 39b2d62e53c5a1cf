"""Dialects: provider bytes become pieces, however the bytes are cut."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.dialects import (
    MAX_LINE_BYTES,
    Dialect,
    DialectName,
    LineSplitter,
    OpenAiDialect,
    TextDialect,
    open_dialect,
)
from gateway.domain.streams.pieces import EndReason, Piece, StreamEnd, TextPiece, ThinkingPiece, ToolPiece

UNICODE_LINE_BREAKS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
HARD_TO_CUT = "👨‍👩‍👧‍👦 🇳🇱 👋🏽 e\u0301 क्षि 한글 שלום 网关"


def run(dialect: Dialect, *parts: bytes) -> tuple[list[Piece], StreamEnd]:
    pieces: list[Piece] = []
    for part in parts:
        pieces += dialect.feed(part)
    rest, end = dialect.close()
    return pieces + rest, end


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


def thinking_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, ThinkingPiece))


def chunk(content: str | None = None, *, ascii_only: bool = False, **rest: Any) -> bytes:
    choice: dict[str, Any] = {"index": rest.pop("index", 0), "delta": {"content": content, **rest.pop("delta", {})}}
    choice["finish_reason"] = rest.pop("finish_reason", None)
    body = {"object": "chat.completion.chunk", "choices": [choice], **rest}
    return json.dumps(body, ensure_ascii=ascii_only).encode()


def cuts_of(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


class TestText:
    def test_a_character_cut_between_two_reads_waits_for_its_rest(self) -> None:
        dialect = TextDialect()

        assert dialect.feed(b"a\xf0\x9f\x98") == [TextPiece("a")]
        assert dialect.feed(b"\xb8b") == [TextPiece("😸b")]

    def test_a_cut_character_at_the_end_is_one_replacement_and_only_then(self) -> None:
        dialect = TextDialect()

        assert dialect.feed(b"\xf0\x9f\x98") == []
        assert dialect.close() == ([TextPiece("\ufffd")], StreamEnd(EndReason.COMPLETE))

    def test_a_stray_byte_does_not_swallow_what_follows(self) -> None:
        pieces, _ = run(TextDialect(), b"a\xffb", b"c")

        assert text_of(pieces) == "a\ufffdbc"

    def test_each_read_is_one_piece(self) -> None:
        pieces, _ = run(TextDialect(), b"one", b"two")

        assert pieces == [TextPiece("one"), TextPiece("two")]

    @given(st.binary(max_size=200), st.lists(st.integers(0, 10_000), max_size=10))
    def test_cuts_never_change_the_text(self, data: bytes, places: list[int]) -> None:
        pieces, _ = run(TextDialect(), *cuts_of(data, places))

        assert text_of(pieces) == data.decode("utf-8", "replace")


class TestLines:
    @given(st.binary(max_size=200), st.lists(st.integers(0, 10_000), max_size=10))
    def test_lines_end_at_lf_only_wherever_they_are_cut(self, data: bytes, places: list[int]) -> None:
        splitter = LineSplitter()
        lines = [line for part in cuts_of(data, places) for line in splitter.feed(part)]
        lines.append(splitter.close())

        assert lines == [line.removesuffix(b"\r") for line in data.split(b"\n")]


class TestOpenAi:
    def test_content_reasoning_and_tool_calls_are_told_apart(self) -> None:
        calls = [{"index": 0, "id": "", "function": {"arguments": '{"a'}}]
        lines = [
            chunk("", delta={"role": "assistant"}),
            chunk(delta={"reasoning_content": "hm"}),
            chunk(delta={"reasoning": "m"}),
            chunk("Hi", delta={"reasoning_content": None}),
            chunk(delta={"tool_calls": calls}),
            chunk(finish_reason="tool_calls", usage={"total_tokens": 7}),
        ]

        pieces, end = run(OpenAiDialect(), b"\n".join(lines))

        assert pieces == [ThinkingPiece("hm"), ThinkingPiece("m"), TextPiece("Hi"), ToolPiece({"tool_calls": calls})]
        assert end == StreamEnd(EndReason.COMPLETE, "tool_calls", {"total_tokens": 7})

    def test_reasoning_under_both_names_counts_once(self) -> None:
        pieces, _ = run(OpenAiDialect(), chunk(delta={"reasoning_content": "hm", "reasoning": "hm"}))

        assert thinking_of(pieces) == "hm"

    def test_text_completions_carry_text_in_the_choice(self) -> None:
        line = json.dumps(
            {"object": "text_completion", "choices": [{"index": 0, "text": "Hi", "finish_reason": "length"}]}
        )

        pieces, end = run(OpenAiDialect(), line.encode())

        assert pieces == [TextPiece("Hi")]
        assert end.finish_reason == "length"

    def test_other_choices_are_left_out(self) -> None:
        pieces, end = run(OpenAiDialect(), chunk("b", index=1, finish_reason="stop") + b"\n" + chunk("a"))

        assert pieces == [TextPiece("a")]
        assert end.reason is EndReason.INCOMPLETE

    def test_event_stream_framing_is_taken_off(self) -> None:
        data = (
            b"\xef\xbb\xbf: ping\r\n\r\nevent: chunk\r\nid: 7\r\nretry: 10\r\ndata: "
            + chunk("a")
            + b"\r\n\r\n:\r\ndata\r\ndata:"
            + chunk("b")
            + b"  \r\n\r\n"
            + chunk("c")
            + b"\n"
        )

        pieces, _ = run(OpenAiDialect(), data)

        assert text_of(pieces) == "abc"

    @pytest.mark.parametrize("done", [b"data: [DONE]", b"data:[DONE]", b"data: [DONE]  \r", b"[DONE]"])
    def test_done_is_recognised_in_each_form(self, done: bytes) -> None:
        dialect = OpenAiDialect()
        dialect.feed(chunk("a") + b"\n" + done + b"\n")

        assert dialect.is_over
        assert dialect.close()[1].reason is EndReason.COMPLETE

    def test_a_token_that_reads_done_is_text(self) -> None:
        pieces, end = run(OpenAiDialect(), b"data: " + chunk("[DONE]") + b"\n")

        assert pieces == [TextPiece("[DONE]")]
        assert end.reason is EndReason.INCOMPLETE

    @pytest.mark.parametrize(
        ("finish_reason", "done", "reason"),
        [
            ("stop", True, EndReason.COMPLETE),
            ("stop", False, EndReason.COMPLETE),
            (None, True, EndReason.COMPLETE),
            (None, False, EndReason.INCOMPLETE),
        ],
    )
    def test_either_word_of_the_provider_makes_it_complete(
        self, finish_reason: str | None, done: bool, reason: EndReason
    ) -> None:
        data = chunk("a", finish_reason=finish_reason) + b"\n" + (b"data: [DONE]\n" if done else b"")

        _, end = run(OpenAiDialect(), data)

        assert end.reason is reason
        assert (end.problem is None) is (reason is EndReason.COMPLETE)

    @pytest.mark.parametrize(
        ("bad", "problem"),
        [
            (b"data: {not json", "line 2 is not JSON"),
            (b"plain words", "line 2 is not JSON"),
            (b'{"usage": NaN}', "line 2 is not JSON"),
            (b"[" * 200_000, "line 2 is not JSON"),
            (b"[1]", "line 2 is not a JSON object"),
            (b'{"choices": 1}', "line 2 has choices that are no list of objects"),
            (b'{"choices": [{"delta": "x"}]}', "line 2 has a delta that is no object"),
            (b'{"choices": [{"delta": {"content": ["x"]}}]}', "line 2 has a content that is no text"),
            (b'{"error": {"message": "overloaded"}}', "line 2 reports an error: overloaded"),
            (b'{"error": "overloaded"}', "line 2 reports an error: overloaded"),
            (b'{"object": "error", "message": "overloaded"}', "line 2 reports an error: overloaded"),
            (b"x" * (MAX_LINE_BYTES + 1), f"line 2 is longer than {MAX_LINE_BYTES} bytes"),
        ],
    )
    def test_a_bad_line_fails_the_run_and_keeps_what_came_before(self, bad: bytes, problem: str) -> None:
        dialect = OpenAiDialect()

        pieces, end = run(dialect, chunk("good") + b"\n" + bad + b"\n" + chunk("late", finish_reason="stop") + b"\n")

        assert pieces == [TextPiece("good")]
        assert (end.reason, end.problem) == (EndReason.FAILED, problem)

    def test_a_line_of_just_the_limit_is_read(self) -> None:
        line = chunk("a")
        line += b" " * (MAX_LINE_BYTES - len(line))

        pieces, _ = run(OpenAiDialect(), line + b"\n")

        assert pieces == [TextPiece("a")]

    def test_a_line_without_an_end_is_not_gathered_for_ever(self) -> None:
        dialect = OpenAiDialect()
        for _ in range(3):
            dialect.feed(b"x" * MAX_LINE_BYTES)

        assert dialect.is_over
        assert dialect._splitter.held_bytes == 0

    def test_half_surrogates_become_replacements_and_pairs_are_joined_across_chunks(self) -> None:
        lines = [
            chunk("a\ud800b", ascii_only=True),
            chunk("\udc00", ascii_only=True),
            chunk("\ud83d", ascii_only=True),
            chunk("\ude00!", ascii_only=True),
            chunk("\ud83d", ascii_only=True),
        ]

        pieces, _ = run(OpenAiDialect(), b"\n".join(lines))

        assert text_of(pieces) == "a\ufffdb\ufffd😀!\ufffd"

    @given(
        st.lists(st.text(max_size=12), max_size=8),
        st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
        st.booleans(),
        st.lists(st.integers(0, 100_000), max_size=12),
    )
    def test_cuts_and_framing_never_change_the_pieces(
        self, texts: list[str], newline: bytes, with_prefix: bool, places: list[int]
    ) -> None:
        texts += [HARD_TO_CUT, UNICODE_LINE_BREAKS, "ends with a newline\n"]
        prefix = b"data: " if with_prefix else b""
        data = b"".join(prefix + chunk(text) + newline for text in texts) + b"data: [DONE]"

        pieces, end = run(OpenAiDialect(), *cuts_of(data, places))

        assert pieces == [TextPiece(text) for text in texts if text]
        assert end.reason is EndReason.COMPLETE

    def test_every_two_part_cut_gives_the_same_pieces(self) -> None:
        data = b"data: " + chunk(HARD_TO_CUT) + b"\r\n\r\ndata:" + chunk("b", finish_reason="stop") + b"\r\n"
        whole = run(OpenAiDialect(), data)

        assert all(run(OpenAiDialect(), data[:place], data[place:]) == whole for place in range(len(data) + 1))


def test_each_name_opens_its_dialect() -> None:
    assert isinstance(open_dialect(DialectName.TEXT), TextDialect)
    assert isinstance(open_dialect(DialectName.OPENAI), OpenAiDialect)
