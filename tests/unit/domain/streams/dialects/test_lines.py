"""Lines: where they end, what frames them, how long they may be, and what another reader must know to go on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.dialects import (
    MAX_LINE_BYTES,
    MAX_STATE_BYTES,
    DialectName,
    NdjsonDialect,
    OpenAiDialect,
    open_dialect,
)
from gateway.domain.streams.dialects.lines import LineSplitter
from gateway.domain.streams.pieces import EndReason, StreamEnd, TextPiece, ThinkingPiece
from tests.unit.domain.streams.dialects.reading import cuts_of, lines, read, read_by_many_hands

FRAMED = [DialectName.OPENAI, DialectName.ANTHROPIC]
OF_LINES = [DialectName.NDJSON, *FRAMED]


def texts(*parts: str, ascii_only: bool = False) -> bytes:
    """Our own lines: what is tested here is the same for all."""
    return lines(*({"text": part} for part in parts), ascii_only=ascii_only)


@given(st.binary(max_size=200), st.lists(st.integers(0, 10_000), max_size=10))
def test_lines_end_at_lf_only_wherever_they_are_cut(data: bytes, places: list[int]) -> None:
    splitter = LineSplitter()
    found = [line for part in cuts_of(data, places) for line in splitter.feed(part)]
    found.append(splitter.close())

    assert found == [line.removesuffix(b"\r") for line in data.split(b"\n")]


class TestLength:
    line = b'{"text":"a"}'
    longest = line + b" " * (MAX_LINE_BYTES - len(line))

    @pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"", b"\r"])
    def test_a_line_of_just_the_limit_is_read_in_one_part_or_two(self, newline: bytes) -> None:
        data = self.longest + newline

        assert read(NdjsonDialect(), data)[0] == [TextPiece("a")]
        assert read(NdjsonDialect(), data[:MAX_LINE_BYTES], data[MAX_LINE_BYTES:])[0] == [TextPiece("a")]
        assert read(NdjsonDialect(), data[: MAX_LINE_BYTES + 1], data[MAX_LINE_BYTES + 1 :])[0] == [TextPiece("a")]

    @pytest.mark.parametrize("newline", [b"\n", b"\r\n", b""])
    @pytest.mark.parametrize("cut", [0, 1, MAX_LINE_BYTES, MAX_LINE_BYTES + 1])
    def test_one_byte_more_is_too_long_however_it_comes(self, newline: bytes, cut: int) -> None:
        data = self.longest + b" " + newline

        pieces, end = read(NdjsonDialect(), data[:cut], data[cut:])

        assert pieces == []
        assert end.problem == f"line 1 is longer than {MAX_LINE_BYTES} bytes"

    def test_a_line_without_an_end_is_not_gathered_for_ever(self) -> None:
        dialect = OpenAiDialect()
        for _ in range(3):
            dialect.feed(b"x" * MAX_LINE_BYTES)

        assert dialect.is_over
        assert dialect.save()[0] == 3 * MAX_LINE_BYTES
        assert dialect._splitter.held_bytes == 0

    def test_after_the_finish_it_is_but_junk(self) -> None:
        finish = lines({"choices": [{"delta": {}, "finish_reason": "stop"}]})

        assert read(OpenAiDialect(), finish, b"x" * 2 * MAX_LINE_BYTES)[1] == StreamEnd(EndReason.COMPLETE, "stop")
        assert read(OpenAiDialect(), finish + b"x" * 2 * MAX_LINE_BYTES + b"\n")[1].problem is None


class TestBadLines:
    @pytest.mark.parametrize("name", OF_LINES)
    @pytest.mark.parametrize(
        ("bad", "problem"),
        [
            (b"{not json", "line 3 is not JSON"),
            (b"plain words", "line 3 is not JSON"),
            (b'{"usage": NaN}', "line 3 is not JSON"),
            (b"[" * 200_000, "line 3 is not JSON"),
            (b'{"error": ' + b"[" * 200_000, "line 3 is not JSON"),
            (b"[1]", "line 3 is not a JSON object"),
            (b'{"error": {"message": "over\\nloaded", "code": 7}}', "line 3 reports an error: over loaded"),
            (b'{"error": {"code": 529}}', "line 3 reports an error: 529"),
            (b'{"error": {"type": "overloaded_error"}}', "line 3 reports an error: overloaded_error"),
            (b'{"error": "overloaded"}', "line 3 reports an error: overloaded"),
            (b'{"error": [1]}', "line 3 reports an error: no reason given"),
        ],
    )
    def test_each_is_named_with_its_number(self, name: DialectName, bad: bytes, problem: str) -> None:
        _, end = read(name, b"\n\n" + bad + b"\nlate\n")

        assert (end.reason, end.problem) == (EndReason.FAILED, problem)

    @pytest.mark.parametrize("name", OF_LINES)
    def test_a_stream_of_blank_lines_is_incomplete(self, name: DialectName) -> None:
        pieces, end = read(name, b"\n \t\n\r\n")

        assert pieces == []
        assert end.reason is EndReason.INCOMPLETE
        assert "after line 3 " in str(end.problem)

    def test_what_came_before_is_delivered_and_nothing_after(self) -> None:
        pieces, end = read(NdjsonDialect(), texts("a", "b") + b"bad\n" + texts("c"), texts("d"))

        assert pieces == [TextPiece("a"), TextPiece("b")]
        assert end == StreamEnd(EndReason.FAILED, problem="line 3 is not JSON")


class TestFraming:
    @pytest.mark.parametrize("name", FRAMED)
    @pytest.mark.parametrize(
        ("report", "words"),
        [
            (b'data: {"code":"InvalidParameter","message":"too hot"}', "too hot"),
            (b'data: {"error":{"message":"too hot"}}', "too hot"),
            (b"data: upstream is gone", "upstream is gone"),
        ],
    )
    def test_the_data_of_an_error_event_is_an_error(self, name: DialectName, report: bytes, words: str) -> None:
        data = b"event: ping\n\nid: 7\nevent:error\n:HTTP_STATUS/400\n" + report + b"\n\n"

        each = list(range(len(data)))
        for _, end in (
            read(name, data),
            read_by_many_hands(name, data, each),
            read_by_many_hands(name, data, [0, *each]),
        ):
            assert (end.reason, end.problem) == (EndReason.FAILED, f"line 6 reports an error: {words}")

    def test_an_error_event_without_data_ends_with_its_blank_line(self) -> None:
        _, end = read(OpenAiDialect(), b"event: error\n\ndata: {}\n\ndata: [DONE]\n\n")

        assert end.reason is EndReason.COMPLETE


class TestReplacements:
    def test_bytes_that_are_no_utf8_are_replaced_and_counted(self) -> None:
        pieces, end = read(NdjsonDialect(), b'{"text":"a\xff\xf0\x9f"}\n' + texts("\ufffd"))

        assert pieces == [TextPiece("a\ufffd\ufffd"), TextPiece("\ufffd")]
        assert end.replaced == 2

    def test_lone_surrogates_too_and_pairs_are_joined_across_lines(self) -> None:
        data = texts("a\ud800b", "\udc00", "\ud83d", "\ude00!", "\ud83d", "plain", "\ud83d", ascii_only=True)
        expected = ["a\ufffdb", "\ufffd", "😀!", "\ufffdplain", "\ufffd"]

        for pieces, end in (
            read(NdjsonDialect(), data),
            read_by_many_hands(DialectName.NDJSON, data, list(range(len(data)))),
        ):
            assert pieces == [TextPiece(text) for text in expected]
            assert end.replaced == 4

    def test_those_of_text_and_thinking_are_not_mixed(self) -> None:
        data = lines({"thinking": "\ud83d"}, {"text": "\ud83d"}, {"thinking": "\ude00"}, {"text": "!"}, ascii_only=True)

        for pieces, end in (
            read(NdjsonDialect(), data),
            read_by_many_hands(DialectName.NDJSON, data, list(range(len(data)))),
        ):
            assert pieces == [ThinkingPiece("😀"), TextPiece("\ufffd!")]
            assert end.replaced == 1

    def test_data_has_no_surrogate(self) -> None:
        pieces, _ = read(NdjsonDialect(), lines({"data": {"\ud800": ["\udc00"]}}, ascii_only=True))

        assert [piece.data for piece in pieces if not isinstance(piece, TextPiece)] == [{"\ufffd": ["\ufffd"]}]


class TestState:
    def test_between_plain_lines_only_the_number_changes(self) -> None:
        dialect = NdjsonDialect()
        dialect.feed(texts("a"))

        first = dialect.save()
        dialect.feed(texts("b") + b'{"te')

        assert first == (len(texts("a")), b"1 ndjson 1 {}")
        assert dialect.save() == (len(texts("a", "b")), b"1 ndjson 2 {}")

    @pytest.mark.parametrize("name", OF_LINES)
    @pytest.mark.parametrize(
        "rest",
        [
            b"",
            b" ",
            b"1 ",
            b"x {}",
            b"-1 {}",
            b"1 [",
            b'1 {"held_text":65}',
            b'1 {"usage":1}',
            b'1 {"extra":7}',
            b'1 {"extra":' + b"[" * 900,
            b'1 {"extra":' + b"[" * 200_000,
            b"9" * 5_000 + b" {}",
            b'1 {"later":"' + b"x" * MAX_STATE_BYTES + b'"}',
        ],
    )
    def test_a_state_that_is_none_is_refused(self, name: DialectName, rest: bytes) -> None:
        with pytest.raises(ValueError, match=r"state|JSON|Expected|limit|truncated"):
            open_dialect(name, b"1 " + name.encode() + b" " + rest)

    def test_the_state_of_another_dialect_or_version_is_refused(self) -> None:
        _, state = NdjsonDialect().save()

        for wrong in (state.replace(b"ndjson", b"openai"), state.replace(b"1 ", b"2 ", 1)):
            with pytest.raises(ValueError, match="no state"):
                NdjsonDialect(wrong)

    def test_members_that_a_later_version_saves_are_ignored(self) -> None:
        assert NdjsonDialect(b'1 ndjson 4 {"later":true,"replaced":2}').replaced == 2

    def test_usage_that_has_no_room_is_left_out_and_the_rest_is_kept(self) -> None:
        end_line = {"event": "end", "reason": "length", "usage": {"x": "y" * MAX_STATE_BYTES}}
        dialect = NdjsonDialect()
        dialect.feed(lines(end_line))

        offset, state = dialect.save()

        assert len(state) <= MAX_STATE_BYTES
        assert NdjsonDialect(state, offset).close()[1] == StreamEnd(EndReason.COMPLETE, "length")
        assert dialect.close()[1].usage == end_line["usage"]

    @given(st.text(max_size=2_000), st.text(max_size=2_000), st.sampled_from(["complete", "failed", "incomplete"]))
    def test_no_words_of_a_provider_make_it_too_large(self, words: str, finish_reason: str, reason: str) -> None:
        line = {"event": "end", "reason": reason, "message": words, "finish_reason": finish_reason}
        dialect = NdjsonDialect()
        dialect.feed(json.dumps(line).encode() + b"\n")

        offset, state = dialect.save()

        assert len(state) <= MAX_STATE_BYTES
        assert NdjsonDialect(state, offset).close() == dialect.close()
