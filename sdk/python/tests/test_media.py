"""Media frames as they are handed out, and what is none."""

import pytest
from relayrouter import connect
from relayrouter.media import MediaDropped, MediaFrame, MediaReader, read_dropped, read_media

PICTURE = bytes.fromhex("01 02 05 03 02 00 00 00 07 00 00 00 00 00 00 03 e8") + b"mecampic"


def test_a_frame_is_read_as_documented() -> None:
    """Byte by byte, as in docs/media.md."""
    assert read_media(PICTURE) == MediaFrame("video", "me", "cam", 7, 1_000, b"pic", is_key=True, is_end=True)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        PICTURE[:16],
        PICTURE[:20],
        b"\x02" + PICTURE[1:],
        b"\x01\x03" + PICTURE[2:],
        PICTURE.replace(b"me", b"\xff\xfe"),
    ],
    ids=["empty", "header", "ids", "version", "type", "utf-8"],
)
def test_what_is_no_frame_is_ignored(data: bytes) -> None:
    """A newer gateway may send what we do not know: no reason to break off."""
    assert read_media(data) is None


def test_a_frame_that_comes_by_two_connections_is_handed_out_once() -> None:
    """While one takes over from the other both bring it."""
    got: list[MediaFrame] = []
    reader = MediaReader(got.append)
    for data in (PICTURE, PICTURE, PICTURE.replace(b"\x07", b"\x08", 1), b"?"):
        reader.take(data)

    assert [frame.sequence for frame in got] == [7, 8]


def test_counts_that_cannot_be_are_none() -> None:
    """Of another version."""
    assert read_dropped({"audio": 2, "video": "x", "audio_only": 1}) == MediaDropped(2, 0, audio_only=False)


@pytest.mark.parametrize("caps", [("Audio",), ("a b",), ("a,b",), ("",), tuple("abcdefghijklmnopq")])
def test_capabilities_that_no_gateway_takes_are_refused_at_once(caps: tuple[str, ...]) -> None:
    """Before anything is tried."""
    with pytest.raises(ValueError, match="caps"):
        connect("http://localhost", session="s", caps=caps)
