"""The proxy's cutter changes no byte, wherever the stream is cut."""

import pytest

from loadtest.resp_stream import RespCutter, bulks

VALUES = [
    b"+OK\r\n",
    b"-ERR no\r\n",
    b":42\r\n",
    b"$5\r\nab\r\nc\r\n",
    b"$-1\r\n",
    b"$0\r\n\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$4\r\n\r\n\r\n\r\n",
    b"*2\r\n*2\r\n:1\r\n$1\r\nx\r\n*1\r\n+y\r\n",
    b"%1\r\n+k\r\n*1\r\n_\r\n",
    b">2\r\n$1\r\na\r\n#t\r\n",
]


@pytest.mark.parametrize("step", [1, 2, 5, 1000])
def test_values_are_whole_and_unchanged(step: int) -> None:
    stream = b"".join(VALUES)
    cutter = RespCutter()

    assert VALUES == [value for at in range(0, len(stream), step) for value in cutter.feed(stream[at : at + step])]


def test_what_is_no_resp_is_an_error() -> None:
    with pytest.raises(ValueError, match="no RESP"):
        RespCutter().feed(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (VALUES[8], [b"message", b"ch", b"\r\n\r\n"]),
        (b"*2\r\n$4\r\nPING\r\n:1\r\n", [b"PING"]),
        (b"*1\r\n$-1\r\n", []),
        (b":1\r\n", []),
    ],
)
def test_words_of_a_command(value: bytes, words: list[bytes]) -> None:
    assert words == bulks(value)
