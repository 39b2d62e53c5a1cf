"""The oracle's framing, against the gateway's own and against itself, however the bytes are cut."""

import pytest

from gateway.domain.wire.ws_frames import encode_close, encode_ping, encode_text
from loadtest.wire import Broken, Decoder, Frame, Op, encode


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_frames_of_every_length_form_are_read(size: int) -> None:
    payload = b"x" * size

    assert Decoder().feed(encode_text(payload)) == [Frame(Op.TEXT, payload)]


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_any_cut_of_the_bytes_gives_the_same_frames(step: int) -> None:
    stream = encode_text("日本".encode()) + encode_ping(b"n") + encode_text(b"y" * 300) + encode_close(1012, "drain")
    decoder = Decoder()
    frames = [frame for at in range(0, len(stream), step) for frame in decoder.feed(stream[at : at + step])]

    assert [frame.op for frame in frames] == [Op.TEXT, Op.PING, Op.TEXT, Op.CLOSE]
    assert frames[-1].close_code == 1012
    assert frames[-1].close_reason == "drain"


def test_fragments_become_one_message_around_a_control_frame() -> None:
    stream = b"\x01\x02\xe6\x97" + b"\x89\x00" + b"\x80\x01\xa5"

    assert [Frame(Op.PING, b""), Frame(Op.TEXT, "日".encode())] == Decoder().feed(stream)


@pytest.mark.parametrize(
    "stream",
    [
        b"\x81\x81\x00\x00\x00\x00x",  # masked by a server
        b"\xc1\x01x",  # a reserved bit
        b"\x83\x00",  # an unknown opcode
        b"\x80\x00",  # a continuation of nothing
        b"\x81\x01\xff",  # no UTF-8
        b"\x88\x03\x03\xe8\xc3",  # a close reason cut inside a character (A11)
        b"\x89\x7e\x00\x7e" + b"x" * 126,  # a ping that is too long
    ],
)
def test_what_breaks_the_protocol_is_refused(stream: bytes) -> None:
    with pytest.raises(Broken):
        Decoder().feed(stream)


@pytest.mark.parametrize("size", [0, 5, 126, 70_000])
def test_client_frames_are_masked(size: int) -> None:
    payload, key = bytes(range(256)) * (size // 256 + 1), b"\x01\x80\xff\x00"
    encoded = encode(Op.TEXT, payload[:size], mask=key)
    body = encoded[len(encoded) - size :]

    assert encoded[1] & 0x80
    assert payload[:size] == bytes(byte ^ key[at % 4] for at, byte in enumerate(body))
