"""The header of media frames, and bodies of many frames (docs/media.md)."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.wire.ids import MAX_ID_BYTES
from gateway.domain.wire.media import (
    HEADER_BYTES,
    MAX_SEQUENCE,
    RECORD_BYTES,
    InvalidMedia,
    MediaFlag,
    MediaFrame,
    MediaType,
    RecordReader,
    decode_media,
    encode_media,
    encode_record,
    read_head,
)

IDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(
    lambda text: text.isprintable() and len(text.encode()) <= MAX_ID_BYTES
)
FRAMES = st.builds(
    MediaFrame,
    st.sampled_from(MediaType),
    IDS,
    st.integers(0, MAX_SEQUENCE),
    st.integers(0, 2**53 - 1),
    st.integers(0, 255),
    st.binary(max_size=300),
    st.just("") | IDS,
)


@given(FRAMES)
def test_a_frame_comes_back_as_it_was(frame: MediaFrame) -> None:
    """Flags without a name, too: a newer client's."""
    assert decode_media(encode_media(frame)) == frame


@given(FRAMES, FRAMES)
def test_a_track_is_one_stream_of_one_sender(one: MediaFrame, other: MediaFrame) -> None:
    """Whatever the ids are: those of two senders never meet."""
    is_same = (one.source, one.stream) == (other.source, other.stream)

    assert (read_head(encode_media(one)).track == read_head(encode_media(other)).track) is is_same


@given(
    st.binary(max_size=80) | FRAMES.map(encode_media).flatmap(lambda data: st.integers(0, 60).map(lambda n: data[:n]))
)
def test_any_bytes_are_a_frame_or_are_refused_in_words(data: bytes) -> None:
    """A client may send anything: nothing but InvalidMedia comes of it, and what is read is what was there."""
    with suppress(InvalidMedia):
        assert encode_media(decode_media(data)) == data


def test_the_header_is_as_documented() -> None:
    """Byte by byte: other languages read it."""
    frame = MediaFrame(MediaType.VIDEO, "cam", 7, 1_000, MediaFlag.KEY | MediaFlag.END, b"pic", "me")

    assert encode_media(frame).hex(" ") == (
        "01 02 05 03 02 00 00 00 07 00 00 00 00 00 00 03 e8 6d 65 63 61 6d 70 69 63"
    )


@pytest.mark.parametrize(("at", "value"), [(0, 0), (0, 2), (1, 0), (1, 3), (3, 200), (4, 200), (9, 0xFF)], ids=str)
def test_what_cannot_be_is_refused(at: int, value: int) -> None:
    """Version, type, ids beyond the end, a timestamp above 2^53."""
    data = bytearray(encode_media(MediaFrame(MediaType.AUDIO, "mic", 0, 0)))
    data[at] = value

    with pytest.raises(InvalidMedia):
        decode_media(bytes(data))


@pytest.mark.parametrize("size", [1, MAX_ID_BYTES])
def test_ids_have_the_usual_length(size: int) -> None:
    """At the limit a frame can be, beyond it not."""
    assert decode_media(encode_media(MediaFrame(MediaType.AUDIO, "s" * size, 0, 0))).stream == "s" * size


@pytest.mark.parametrize("stream", ["", "s" * (MAX_ID_BYTES + 1), "a\nb"])
def test_an_id_that_is_none_is_refused(stream: str) -> None:
    """A frame without a stream cannot exist."""
    with pytest.raises(InvalidMedia):
        MediaFrame(MediaType.AUDIO, stream, 0, 0)


def test_a_frame_without_a_stream_takes_that_of_its_request() -> None:
    """The path of the request names it."""
    data = bytearray(encode_media(MediaFrame(MediaType.AUDIO, "x", 0, 0)))
    data[3] = 0

    assert decode_media(bytes(data[:HEADER_BYTES]), default_stream="mic").stream == "mic"


@given(st.lists(st.binary(max_size=50), max_size=20), st.data())
def test_a_body_gives_its_frames_however_it_is_cut(frames: list[bytes], data: st.DataObject) -> None:
    """A proxy may cut a chunked body anywhere."""
    body = b"".join(map(encode_record, frames))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=10)))
    reader = RecordReader(50)
    got = []
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        got += reader.feed(body[start:end])

    assert (got, reader.is_between_frames) == (frames, True)


def test_a_body_that_breaks_off_is_known() -> None:
    """Half a frame is none."""
    reader = RecordReader(50)

    assert reader.feed(encode_record(b"abc")[:-1]) == []
    assert not reader.is_between_frames


@pytest.mark.parametrize(("size", "is_taken"), [(9, True), (10, True), (11, False)])
def test_a_frame_beyond_the_limit_is_refused_by_its_length_alone(size: int, is_taken: bool) -> None:
    """Before anything of it is held."""
    reader = RecordReader(10)
    data = encode_record(bytes(size))
    if is_taken:
        assert reader.feed(data) == [bytes(size)]
    else:
        with pytest.raises(InvalidMedia):
            reader.feed(data[:RECORD_BYTES])
