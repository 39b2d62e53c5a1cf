"""Who gets a frame of the bus, and who never does (B10, G11, G13)."""

import pytest

from gateway.core.media.desk import DELIVERIES_A_SECOND, DELIVERIES_AT_ONCE, REST_SECONDS, SESSION_SHARE
from gateway.domain.wire.bus import BusKind, encode_fields
from gateway.domain.wire.media import InvalidMedia, MediaType
from tests.unit.core.media.media_stage import MediaStage, answer_pings, encoded, lane_of, sequences
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


async def test_who_takes_several_messages_in_a_frame_takes_no_media_for_that() -> None:
    """No lane is kept for it either."""
    async with stage() as it:
        connection, _ = await MediaStage(it).connect("c1", "batch")

        assert connection.capabilities.takes_batches
        assert connection.media is None


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


@pytest.mark.parametrize(("more", "refused"), [(-1, 0), (0, 0), (1, 1)])
async def test_a_session_has_so_many_deliveries_at_once(more: int, refused: int) -> None:
    """A frame to each of its clients is one; text needs the same loop, however small the frames are."""
    async with stage() as it:
        media = MediaStage(it)
        connection, link = await media.connect("c1")
        for number in range(DELIVERIES_AT_ONCE // SESSION_SHARE + more):
            media.deliver(encoded(MediaType.AUDIO, number, 0, size=1))
            await settle()
            answer_pings(connection, link, media.desk)

        assert it.measures.media_dropped["overload"] == refused
        assert len(link.media) == DELIVERIES_AT_ONCE // SESSION_SHARE + min(more, 0)


async def test_more_media_than_the_loop_has_time_for_is_dropped_for_everybody_told_and_counted() -> None:
    """Ten clients that get a frame are ten deliveries; what comes later in the second is theirs again."""
    async with stage() as it:
        media = MediaStage(it)
        pairs = [await media.connect(f"c{number}") for number in range(10)]
        for number in range(DELIVERIES_AT_ONCE // SESSION_SHARE // 10 + 5):
            media.deliver(encoded(MediaType.AUDIO, number, 0, size=1))
            await settle()
            for connection, link in pairs:
                answer_pings(connection, link, media.desk)
        it.now[0] += 10 * SESSION_SHARE / DELIVERIES_A_SECOND
        media.deliver(encoded(MediaType.AUDIO, 1_000, 0, size=1))
        it.now[0] += REST_SECONDS
        media.desk.turn()

        lanes = [lane_of(connection) for connection, _ in pairs]
        assert [(lane.offered - lane.delivered, lane.dropped) for lane in lanes] == [(5, 5)] * 10
        assert [link.control("media_dropped")[-1]["audio"] for _, link in pairs] == [5] * 10
        assert all(sequences(link)[-1] == 1_000 for _, link in pairs)
