"""The media of one connection: below the text, bounded on the way, held back where it must be (B2, A11, A13)."""

import pytest

from gateway.core.media.desk import REST_SECONDS
from gateway.core.media.lane import TELL_SECONDS
from gateway.core.pacing import LONGEST_SECONDS, Pacing
from gateway.domain.sessions.quality import Level
from gateway.domain.streams.media_pressure import UNTIL_SECONDS
from gateway.domain.streams.media_queue import MediaPolicy
from gateway.domain.wire.media import MediaFlag, MediaType
from tests.unit.core.media.media_stage import MediaStage, answer_pings, encoded, lane_of, sequences
from tests.unit.core.stage import settle, stage

AUDIO, VIDEO = MediaType.AUDIO, MediaType.VIDEO
KIB = 1024


async def test_media_comes_after_the_text_of_the_same_batch() -> None:
    """The bus brought both: text is written first."""
    async with stage() as it:
        media = MediaStage(it)
        _, link = await media.connect("c1")
        order: list[str] = []
        write = link.write
        link.write = lambda frames: (order.append("media" if frames[0] == 0x82 else "text"), write(frames))[1]  # type: ignore[method-assign]

        media.deliver(encoded())
        it.append("hello")
        await settle()

        assert order == ["text", "media"]


async def test_media_waits_while_something_is_unsent() -> None:
    """And goes out, in order, when it has gone."""
    async with stage() as it:
        media = MediaStage(it)
        connection, link = await media.connect("c1")
        link.stall()
        it.append("hello")
        media.deliver(encoded(sequence=1), encoded(sequence=2))
        await settle()
        before = lane_of(connection).delivered
        link.go_on()
        media.desk.turn()

        assert (before, sequences(link)) == (0, [1, 2])


async def test_only_one_frame_is_written_that_the_kernel_did_not_take() -> None:
    """So text that comes now waits behind one at most."""
    async with stage() as it:
        media = MediaStage(it)
        connection, link = await media.connect("c1")
        link.stall()
        media.deliver(*(encoded(sequence=number) for number in range(5)))
        await settle()
        media.desk.turn()

        assert lane_of(connection).delivered == 1


async def test_what_is_on_its_way_is_bounded_by_what_the_client_answered() -> None:
    """Whatever a proxy would take; its answers to pings make room."""
    async with stage() as it:
        media = MediaStage(it, window_bytes=4 * KIB)
        connection, link = await media.connect("c1")
        media.deliver(*(encoded(sequence=number) for number in range(9)))
        await settle()
        first = sequences(link)
        answer_pings(connection, link, media.desk)
        await settle()

        assert first == [0, 1, 2, 3]
        assert sequences(link) == [0, 1, 2, 3, 4, 5, 6, 7]


async def test_an_answer_that_cannot_be_makes_no_room() -> None:
    """Of another ping, or to more than was asked."""
    async with stage() as it:
        media = MediaStage(it, window_bytes=4 * KIB)
        connection, link = await media.connect("c1")
        media.deliver(*(encoded(sequence=number) for number in range(9)))
        await settle()
        for payload in (b"", b"m", bytes(8), b"m" + (10**9).to_bytes(8, "big")):
            media.desk.on_pong(connection, payload)
        await settle()

        assert sequences(link) == [0, 1, 2, 3]


async def test_a_frame_larger_than_the_window_still_goes() -> None:
    """When nothing else is on its way: no frame waits for ever."""
    async with stage() as it:
        media = MediaStage(it, window_bytes=4 * KIB)
        _, link = await media.connect("c1")
        media.deliver(encoded(size=10_000))
        await settle()

        assert len(link.media) == 1


async def test_a_large_frame_behind_small_ones_does_not_wait_for_ever() -> None:
    """Who waits for room has asked for all that is on its way."""
    async with stage() as it:
        media = MediaStage(it, window_bytes=4 * KIB)
        connection, link = await media.connect("c1")
        media.deliver(encoded(sequence=1, size=100), encoded(sequence=2, size=100), encoded(sequence=3, size=4_000))
        await settle()
        while link.pings:
            answer_pings(connection, link, media.desk)
            await settle()

        assert sequences(link) == [1, 2, 3]


async def test_media_never_makes_text_wait_for_an_ack() -> None:
    """It is no part of the window of acknowledgements."""
    async with stage(unacked_bytes=16 * KIB) as it:
        media = MediaStage(it)
        connection, _ = await media.connect("c1", is_acking=True)
        it.append("x")
        for number in range(40):
            media.deliver(encoded(sequence=number))
            await settle(3)
        it.append("y")

        assert (connection.is_live, connection.unacked_bytes < 1_000) == (True, True)


async def test_who_takes_media_slowly_has_not_stopped_reading() -> None:
    """Its bytes count as taken."""
    async with stage() as it:
        media = MediaStage(it)
        connection, link = await media.connect("c1")
        is_stuck = []
        for _ in range(30):
            link.stall()
            media.deliver(encoded(size=5_000))
            await settle(3)
            it.now[0] += 5
            is_stuck.append(connection.has_stopped_reading(it.now[0]))
            link.go_on()
            answer_pings(connection, link, media.desk)

        assert not any(is_stuck)


async def test_dropped_frames_are_told_at_most_once_a_second() -> None:
    """Each is in one count."""
    async with stage() as it:
        media = MediaStage(it)
        _, link = await media.connect("c1")
        for _ in range(5):
            media.deliver(encoded(flags=0))
            await settle()
        first = link.control("media_dropped")
        media.pass_time(TELL_SECONDS + REST_SECONDS)

        told = {"kind": "media_dropped", "audio": 0, "audio_only": False}
        assert first == [told | {"count": 1, "video": 1}]
        assert link.control("media_dropped")[1:] == [told | {"count": 4, "video": 4}]


async def test_a_poor_connection_gets_audio_only_until_it_has_been_well() -> None:
    """Then video begins with a key frame."""
    async with stage() as it:
        media = MediaStage(it)
        connection, link = await media.connect("c1")
        media.deliver(encoded(sequence=1))
        await settle()
        connection.quality.level = Level.POOR
        media.deliver(encoded(sequence=2), encoded(AUDIO, 3))
        await settle()
        connection.quality.level = Level.GOOD
        media.pass_time(UNTIL_SECONDS + 1)
        media.deliver(encoded(sequence=4, flags=0), encoded(sequence=5), encoded(sequence=6, flags=0))
        await settle()

        assert sequences(link) == [1, 3, 5, 6]
        assert lane_of(connection).offered == lane_of(connection).delivered + lane_of(connection).dropped == 6


@pytest.mark.parametrize(("caps", "is_allowed"), [("video", True), ("media", False)])
async def test_who_takes_no_audio_keeps_its_video(caps: str, is_allowed: bool) -> None:
    """And so does everybody where the policy says so."""
    async with stage() as it:
        media = MediaStage(it)
        media.desk.policy = lambda _: MediaPolicy(audio_only=is_allowed)
        connection, link = await media.connect("c1", caps)
        connection.quality.level = Level.POOR
        media.deliver(encoded(sequence=1))
        await settle()

        assert sequences(link) == [1]


async def test_who_comes_again_and_again_gets_no_media_for_a_while() -> None:
    """A13: held back and counted, and told when that is over."""
    async with stage() as it:
        media = MediaStage(it)
        connection, link = await media.connect("c1")
        connection.pacing = Pacing(it.now[0])
        media.deliver(encoded(sequence=1))
        await settle()
        before = (sequences(link), link.control("media_dropped"))
        it.now[0] += LONGEST_SECONDS
        media.deliver(encoded(sequence=2))
        await settle()

        assert before == ([], [])
        assert sequences(link) == [2]
        assert [told["count"] for told in link.control("media_dropped")] == [1]
        assert it.measures.media_dropped == {"paced": 1}


async def test_who_paused_its_text_gets_no_media_either() -> None:
    """It grows old meanwhile."""
    async with stage() as it:
        media = MediaStage(it)
        connection, link = await media.connect("c1")
        connection.pause()
        media.deliver(encoded(AUDIO))
        await settle()
        media.pass_time(2.5)
        connection.go_on()
        await settle()
        media.desk.turn()

        assert (sequences(link), it.measures.media_dropped["stale"]) == ([], 1)


async def test_what_waits_when_a_connection_ends_is_counted_and_its_memory_is_free() -> None:
    """Every frame is delivered or dropped."""
    async with stage() as it:
        media = MediaStage(it)
        connection, link = await media.connect("c1")
        link.stall()
        media.deliver(*(encoded(sequence=number) for number in range(4)))
        await settle()
        connection.end("client")
        media.desk.turn()

        lane = lane_of(connection)
        assert (lane.offered, lane.delivered, lane.dropped) == (4, 1, 3)
        assert (media.desk.waiting_bytes, it.measures.media_dropped) == (0, {"closed": 3})


@pytest.mark.parametrize("flags", [MediaFlag.KEY, MediaFlag.END])
async def test_the_memory_of_all_lanes_is_bounded(flags: int) -> None:
    """Beyond it nobody's media is queued, whoever came first."""
    async with stage() as it:
        media = MediaStage(it, memory_bytes=KIB * KIB, queue_bytes=700 * KIB)
        pairs = [await media.connect(name) for name in ("c1", "c2")]
        for _, link in pairs:
            link.stall()
        media.deliver(*(encoded(flags=flags, size=50_000) for _ in range(20)))
        await settle()

        assert media.desk.waiting_bytes <= KIB * KIB
        assert it.measures.media_dropped["memory"] > 0


@pytest.mark.parametrize("flags", [0, MediaFlag.END])
async def test_who_takes_its_media_at_once_gets_it_while_the_slow_fill_all_memory(flags: int) -> None:
    """A few that take nothing would end the media of all sessions of the gateway."""
    async with stage() as it:
        media = MediaStage(it, memory_bytes=KIB * KIB, queue_bytes=256 * KIB, window_bytes=64 * KIB)
        for number in range(5):
            (await media.connect(f"slow{number}"))[1].stall()
        media.deliver(*(encoded(AUDIO, number, flags, size=40_000) for number in range(10)))
        connection, link = await media.connect("well")
        for number in range(50):
            media.deliver(encoded(AUDIO, number, flags, size=40_000))
            await settle()
            answer_pings(connection, link, media.desk)
        used_bytes = media.desk.waiting_bytes

        assert sequences(link) == list(range(50))
        assert used_bytes > KIB * KIB - 41_000, "memory was full all the time"


async def test_who_does_not_answer_for_its_media_gets_none_beyond_its_window_while_memory_is_full() -> None:
    """Memory is bounded by a window for each connection."""
    async with stage() as it:
        media = MediaStage(it, memory_bytes=KIB * KIB, queue_bytes=700 * KIB, window_bytes=64 * KIB)
        for number in range(2):
            (await media.connect(f"slow{number}"))[1].stall()
        media.deliver(*(encoded(AUDIO, number, 0, size=40_000) for number in range(20)))
        connection, link = await media.connect("silent")
        for number in range(20):
            media.deliver(encoded(AUDIO, number, 0, size=40_000))
            await settle()

        assert (len(link.media), lane_of(connection).waiting_bytes) == (1, 0)


async def test_text_that_is_queued_goes_first() -> None:
    """Whoever looks at the lane in between."""
    async with stage() as it:
        media = MediaStage(it)
        connection, link = await media.connect("c1")
        media.deliver(encoded())
        connection.queue(1, b"\x81\x02{}")
        media.desk.turn()
        before = link.media[:]
        connection.flush()
        media.desk.turn()

        assert (before, len(link.media)) == ([], 1)
