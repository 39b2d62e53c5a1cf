"""What comes in: to the gateways whose clients take it, bounded, and said when it is wrong (B10)."""

import asyncio

import pytest

from gateway.core.media.audiences import FRESH_SECONDS, KNOWN_SECONDS, WAIT_SECONDS, Audiences
from gateway.core.media.intake import LEAST_COST_BYTES, MediaIntake, Taken
from gateway.core.tasks import TaskOwner
from gateway.domain.sessions.log_state import Fork, LogState
from gateway.domain.wire.bus import decode_media_notice
from gateway.domain.wire.capabilities import Capabilities
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, SessionRef
from gateway.domain.wire.media import MediaFrame, MediaType, decode_media, encode_media
from gateway.ports import RouteInfo, SessionInfo, StoreUnavailable
from gateway.settings import MediaSettings
from tests.unit.core.media.media_stage import MediaStage, lane_of, sequences
from tests.unit.core.stage import GATEWAY, Stage, settle, stage

ELSEWHERE = GatewayId("gw-2")
AUDIO, VIDEO = MediaType.AUDIO, MediaType.VIDEO


class Routes:
    """What Redis says of the session."""

    def __init__(self) -> None:
        self.routes: list[RouteInfo] = []
        self.is_deleted = False
        self.is_away = False
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def add(self, client: str, gateway: GatewayId, caps: str) -> None:
        capabilities = Capabilities.parse(caps)
        self.routes.append(
            RouteInfo(ClientId(client), gateway, ConnectionId("c"), 1, 1_000, None, capabilities=capabilities)
        )

    async def info(self, _: SessionRef) -> SessionInfo:
        self.asked += 1
        await self.gate.wait()
        if self.is_away:
            raise StoreUnavailable("away", outcome_unknown=False)
        log = LogState("e", (Fork("f", 0, {}, {}),), 0, 0, 0)
        return SessionInfo(log, None, 1, 0, 0, tuple(self.routes), self.is_deleted)


class OtherGateways:
    """ports.MediaBus."""

    def __init__(self) -> None:
        self.told: list[tuple[GatewayId, int]] = []
        self.is_full = False

    def publish(self, gateway: GatewayId, message: bytes) -> bool:
        if not self.is_full:
            self.told.append((gateway, decode_media(decode_media_notice(message)[1]).sequence))
        return not self.is_full


class Scene:
    def __init__(self, it: Stage, owner: TaskOwner, **settings: int) -> None:
        self.it = it
        self.media = MediaStage(it)
        self.routes = Routes()
        self.bus = OtherGateways()
        clock = lambda: it.now[0]  # noqa: E731
        audiences = Audiences(self.routes, owner, clock)  # type: ignore[arg-type]  it asks for `info` only
        self.intake = MediaIntake(
            audiences, self.media.desk, self.bus, MediaSettings(**settings), it.measures, gateway=GATEWAY, clock=clock
        )

    async def take(self, kind: MediaType = AUDIO, sequence: int = 0, payload: bytes = b"", source: str = "") -> Taken:
        return await self.intake.take(self.it.log.ref, MediaFrame(kind, "s", sequence, 0, 1, payload, source))


async def test_it_goes_to_each_gateway_with_a_client_that_takes_it_once() -> None:
    """Not where only its sender is, or who takes another type."""
    async with stage() as it:
        scene = Scene(it, it.owner)
        for client, gateway, caps in (
            ("a", "gw-2", "audio"),
            ("b", "gw-2", "media"),
            ("c", "gw-3", "video"),
            ("me", "gw-4", "media"),
            ("d", "gw-5", ""),
        ):
            scene.routes.add(client, GatewayId(gateway), caps)

        outcomes = [await scene.take(AUDIO, 1, source="me"), await scene.take(VIDEO, 2)]

        assert outcomes == [Taken.SENT, Taken.SENT]
        assert sorted(scene.bus.told) == [("gw-2", 1), ("gw-2", 2), ("gw-3", 2), ("gw-4", 2)]
        assert it.measures.media_received == {"sent": 2}


async def test_who_is_here_gets_it_without_a_route_being_read() -> None:
    """Also while Redis is away."""
    async with stage() as it:
        scene = Scene(it, it.owner)
        scene.routes.is_away = True
        _, link = await scene.media.connect("c1")

        taken = await scene.take(VIDEO, 7)
        await settle()

        assert (taken, sequences(link)) == (Taken.SENT, [7])


async def test_nobody_who_takes_it_is_no_error() -> None:
    """Media is for who is there."""
    async with stage() as it:
        assert await Scene(it, it.owner).take() is Taken.NOBODY


@pytest.mark.looptime
async def test_one_frame_at_most_waits_while_redis_does_not_answer() -> None:
    """Fifty a second come from a microphone, and what its client acknowledges waits behind them."""
    async with stage() as it:
        scene = Scene(it, it.owner)
        scene.routes.gate.clear()
        began = asyncio.get_running_loop().time()

        outcomes = [await scene.take() for _ in range(20)]
        waited_seconds = asyncio.get_running_loop().time() - began
        scene.routes.is_away = True
        scene.routes.gate.set()
        await settle()
        scene.routes.gate.clear()
        it.now[0] += FRESH_SECONDS
        outcomes += [await scene.take() for _ in range(20)]
        scene.routes.gate.set()
        await settle()

        assert set(outcomes) == {Taken.UNAVAILABLE}
        assert scene.routes.asked == 2
        assert waited_seconds == WAIT_SECONDS
        assert asyncio.get_running_loop().time() - began < 2 * WAIT_SECONDS


async def test_routes_are_read_once_a_second_and_nothing_waits_for_it() -> None:
    """Only the first frame of a session does."""
    async with stage() as it:
        scene = Scene(it, it.owner)
        scene.routes.add("a", ELSEWHERE, "audio")
        for _ in range(3):
            await scene.take()
        it.now[0] += FRESH_SECONDS + 0.1
        scene.routes.gate.clear()
        taken = await scene.take()
        scene.routes.gate.set()
        await settle()

        assert (taken, scene.routes.asked) == (Taken.SENT, 2)


async def test_old_news_of_who_is_there_is_none() -> None:
    """When Redis has been away for long, media is dropped and counted."""
    async with stage() as it:
        scene = Scene(it, it.owner)
        scene.routes.add("a", ELSEWHERE, "audio")
        before = await scene.take()
        scene.routes.is_away = True
        it.now[0] += KNOWN_SECONDS + 0.1
        outcomes = [await scene.take() for _ in range(3)]

        assert (before, set(outcomes), scene.routes.asked) == (Taken.SENT, {Taken.UNAVAILABLE}, 2)


async def test_a_bus_that_takes_no_more_is_said() -> None:
    """Nothing is kept for later."""
    async with stage() as it:
        scene = Scene(it, it.owner)
        scene.routes.add("a", ELSEWHERE, "audio")
        scene.bus.is_full = True

        assert await scene.take() is Taken.UNAVAILABLE


async def test_a_deleted_session_is_gone() -> None:
    """A publisher has to know."""
    async with stage() as it:
        scene = Scene(it, it.owner)
        scene.routes.is_deleted = True
        with pytest.raises(RelayError) as told:
            await scene.take()

        assert told.value.code is ErrorCode.GONE


@pytest.mark.parametrize(("more", "is_taken"), [(-1, True), (0, True), (1, False)])
async def test_a_frame_has_a_limit_with_its_header(more: int, is_taken: bool) -> None:
    """17 bytes and the ids."""
    async with stage() as it:
        scene = Scene(it, it.owner, frame_bytes=2_000)
        payload = bytes(2_000 - 18 + more)
        if is_taken:
            assert await scene.take(payload=payload) is Taken.NOBODY
        else:
            with pytest.raises(RelayError, match="2000 bytes"):
                await scene.take(payload=payload)


async def test_the_rate_of_a_session_is_bounded_and_tiny_frames_count_too() -> None:
    """After the burst, so much a second."""
    async with stage() as it:
        scene = Scene(it, it.owner, bytes_per_second=1_024, burst_bytes=64 * 1_024)
        burst = 64 * 1_024 // LEAST_COST_BYTES
        outcomes = [await scene.take() for _ in range(burst + 1)]
        it.now[0] += LEAST_COST_BYTES / 1_024
        outcomes.append(await scene.take())

        assert outcomes == [*[Taken.NOBODY] * burst, Taken.OVER_RATE, Taken.NOBODY]


async def test_a_clients_frame_is_stamped_with_its_name() -> None:
    """And goes to the others."""
    async with stage() as it:
        scene = Scene(it, it.owner)
        connection, own = await scene.media.connect("me")
        _, other = await scene.media.connect("you")

        await scene.intake.by_socket(connection, encode_media(MediaFrame(VIDEO, "cam", 1, 0, 1, b"x")))
        await settle()

        assert own.media == []
        assert [decode_media(frame).source for frame in other.media] == ["me"]


async def test_a_frame_that_names_a_source_of_its_own_is_refused() -> None:
    """Nobody speaks in another's name."""
    async with stage() as it:
        scene = Scene(it, it.owner)
        connection, _ = await scene.media.connect("me")
        with pytest.raises(RelayError) as told:
            await scene.intake.by_socket(connection, encode_media(MediaFrame(VIDEO, "cam", 1, 0, source="you")))

        assert told.value.code is ErrorCode.BAD_REQUEST


@pytest.mark.parametrize("what", ["is_previous", "is_fenced"])
async def test_of_an_older_connection_nothing_is_taken(what: str) -> None:
    """The newer one writes (G6)."""
    async with stage() as it:
        scene = Scene(it, it.owner)
        connection, _ = await scene.media.connect("me")
        _, other = await scene.media.connect("you")
        setattr(connection, what, True)
        await scene.intake.by_socket(connection, encode_media(MediaFrame(VIDEO, "cam", 1, 0, 1)))
        await settle()

        assert other.media == []


async def test_a_client_that_sends_too_much_is_told_how_much_was_dropped() -> None:
    """Not by an error for each."""
    async with stage() as it:
        scene = Scene(it, it.owner, bytes_per_second=1_024, burst_bytes=64 * 1_024)
        connection, link = await scene.media.connect("me")
        for number in range(64 * 1_024 // LEAST_COST_BYTES + 12):
            await scene.intake.by_socket(connection, encode_media(MediaFrame(VIDEO, "cam", number, 0)))
        await settle()

        assert [told["upload"] for told in link.control("media_dropped")] == [12]
        assert lane_of(connection).offered == 0
