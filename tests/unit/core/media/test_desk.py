"""Who gets a frame of the bus, and who never does (B10, G11, G13)."""

import pytest

from gateway.domain.wire.bus import BusKind, encode_fields
from gateway.domain.wire.media import InvalidMedia, MediaType
from tests.unit.core.media.media_stage import MediaStage, encoded, sequences
from tests.unit.core.stage import settle, stage


async def test_a_frame_goes_to_those_who_take_its_type() -> None:
    """Never to one that did not ask."""
    async with stage() as it:
        media = MediaStage(it)
        links = {caps: (await media.connect(f"c-{caps}", caps))[1] for caps in ("", "audio", "video/vp8", "media")}

        media.deliver(encoded(MediaType.AUDIO, 1), encoded(MediaType.VIDEO, 2))
        await settle()

        assert {caps: sequences(link) for caps, link in links.items()} == {
            "": [],
            "audio": [1],
            "video/vp8": [2],
            "media": [1, 2],
        }


async def test_the_sender_does_not_hear_itself() -> None:
    """On none of its connections."""
    async with stage() as it:
        media = MediaStage(it)
        _, own = await media.connect("me")
        _, other = await media.connect("you")

        media.deliver(encoded(sequence=1, source="me"))
        await settle()

        assert (sequences(own), sequences(other)) == ([], [1])


async def test_before_its_welcome_a_connection_gets_nothing() -> None:
    """Its claim is under way."""
    async with stage() as it:
        media = MediaStage(it)
        connection = it.make("c1")
        it.hub.shared.equip(connection, connection.capabilities)
        media.deliver(encoded())
        claimed = await it.claim(connection)
        link = it.open(connection, claimed)
        await settle()

        assert link.kinds() == ["welcome"]


async def test_a_frame_of_another_session_goes_nowhere() -> None:
    """The key of the message decides."""
    async with stage() as it:
        media = MediaStage(it)
        _, link = await media.connect("c1")

        media.desk.on_media(encode_fields(BusKind.MEDIA, b"default:other", encoded()))
        media.desk.on_media(encode_fields(BusKind.MEDIA, it.log.ref.key, encoded(sequence=10)))
        await settle()

        assert sequences(link) == [10]


@pytest.mark.parametrize(
    "message", [b"1e", b"1e\nkey", b"1e\ndefault:chat-1\n", b"1e\ndefault:chat-1\n\x09" + bytes(30)]
)
async def test_a_message_that_is_none_is_an_error_for_the_listener(message: bytes) -> None:
    """Which counts it as malformed; a header of a later version, too."""
    async with stage() as it:
        media = MediaStage(it)
        await media.connect("c1")

        with pytest.raises((ValueError, InvalidMedia)):
            media.desk.on_media(message)
