"""What an application writes, as the input of its run."""

import json
from typing import Any

import pytest
from relayrouter.producer_lines import LineWriter, raw_parts


@pytest.mark.parametrize("chunk", [None, 7, ["a"], {"text": "a"}])
def test_what_is_no_chunk_is_refused_in_words_and_writes_nothing(chunk: Any) -> None:
    """`bytes(7)` are seven zeros, and None is what a provider's delta has where there is no text."""
    for parts in (LineWriter().texts("text", chunk), raw_parts(chunk)):
        with pytest.raises(TypeError, match="a chunk is text or bytes, not "):
            list(parts)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_of_any_kind_are_text_cut_anywhere(kind: type) -> None:
    """A character may come in two halves."""
    lines = LineWriter()
    written = [*lines.texts("text", kind("é".encode()[:1])), *lines.texts("text", kind("é".encode()[1:]))]

    assert [json.loads(line) for line in written] == [{"text": "é"}]
    assert b"".join(raw_parts(kind(b"a\xff"))) == b"a\xff"
