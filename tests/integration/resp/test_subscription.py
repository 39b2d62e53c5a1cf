"""The gateway's own channel against a real server: confirmed first, found dead in time, subscribed again."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.adapters.resp import Address, Client, Subscription, channel_of
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.settings.redis import RedisSettings
from tests.integration.resp.certificates import write_certificate
from tests.integration.resp.conftest import Run
from tests.integration.resp.servers import Proxy, Server, running, stand_still

ME = GatewayId("gateway-1")
QUICK = RedisSettings(
    ping_interval_seconds=0.2,
    call_timeout_seconds=0.5,
    connect_timeout_seconds=1,
    backoff_min_ms=20,
    backoff_max_ms=100,
)


class Ear:
    """What the listener heard, in order."""

    def __init__(self) -> None:
        self.heard: list[str | list[bytes]] = []
        self._changed = asyncio.Event()

    def on_subscribed(self) -> None:
        self._note("subscribed")

    def on_messages(self, messages: list[bytes]) -> None:
        self._note(messages)

    def on_down(self, reason: str) -> None:
        self._note(f"down: {reason}")

    def _note(self, what: str | list[bytes]) -> None:
        self.heard.append(what)
        self._changed.set()

    @property
    def messages(self) -> list[bytes]:
        return [message for batch in self.heard if isinstance(batch, list) for message in batch]

    @property
    def states(self) -> list[str]:
        return [what for what in self.heard if isinstance(what, str)]

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def until_subscribed(self, times: int = 1) -> None:
        await self.until(lambda: self.states.count("subscribed") >= times)


class Bus:
    """A running subscription with the client that publishes."""

    def __init__(self, subscribe_at: Address, publish_at: Address) -> None:
        self.ear = Ear()
        self.measures = Measures()
        self.client = Client(publish_at, QUICK, rng=random.Random(1), measures=self.measures, name="probe")
        self.subscription = Subscription(subscribe_at, self.client, QUICK, rng=random.Random(2), measures=self.measures)


@asynccontextmanager
async def bus(server: Server, through: Proxy | None = None) -> AsyncIterator[Bus]:
    it = Bus(server.address if through is None else through.address, server.address)
    async with running(it.client.run()), running(it.subscription.run(ME, it.ear)):
        await it.ear.until_subscribed()
        await it.client.call("PING")
        yield it


def publish(server: Server, *messages: bytes) -> int:
    """All in one write; how many subscribers the last one reached."""
    with server.admin.pipeline(transaction=False) as pipeline:
        for message in messages:
            pipeline.publish(channel_of(ME), message)
        return int(pipeline.execute()[-1])


def test_confirmation_comes_before_any_message(run: Run, server: Server) -> None:
    """A slow SUBSCRIBE (R17), and messages in the very read that brings its confirmation."""

    async def scenario() -> None:
        async with Proxy(server.port, delay_seconds=0.15).running() as proxy:
            it = Bus(proxy.address, server.address)
            async with running(it.subscription.run(ME, it.ear)):
                # The server has the subscription, we do not know it yet.
                while publish(server, b"early") == 0:
                    await asyncio.sleep(0.005)
                before = list(it.ear.heard)
                await it.ear.until(lambda: b"early" in it.ear.messages)

                assert before == []
                assert it.ear.heard[0] == "subscribed"

    run(scenario())


def test_one_read_is_one_call(run: Run, server: Server) -> None:
    messages = [b"1m\nkey\n%d\r\n" % i for i in range(500)]

    async def scenario() -> None:
        async with bus(server) as it:
            publish(server, *messages)
            await it.ear.until(lambda: len(it.ear.messages) >= 500)

            assert messages == it.ear.messages
            assert len(it.ear.heard) < 20

    run(scenario())


def test_twenty_kills_in_a_row(run: Run, server: Server) -> None:
    """R01: every time it is told, every time it comes back, and messages arrive afterwards."""

    async def scenario() -> None:
        async with bus(server) as it:
            for i in range(20):
                assert server.kill_clients("pubsub") == 1
                await it.ear.until_subscribed(i + 2)
                assert publish(server, b"after %d" % i) == 1
                await it.ear.until(lambda i=i: b"after %d" % i in it.ear.messages)  # type: ignore[misc]

            assert ["subscribed", "down: closed by the server"] * 20 + ["subscribed"] == it.ear.states
            assert [b"after %d" % i for i in range(20)] == it.ear.messages
            assert it.measures.bus_reconnects == 20

    run(scenario())


def test_restarted_server_is_found_again(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with bus(server) as it:
            server.end()
            await it.ear.until(lambda: len(it.ear.states) == 2)
            await asyncio.sleep(0.3)
            told_while_away = it.ear.states[2:]
            server.start()
            await it.ear.until_subscribed(2)

            assert told_while_away == []
            assert publish(server, b"again") == 1
            await it.ear.until(lambda: it.ear.messages == [b"again"])

    run(scenario())


def test_half_open_link_is_replaced_within_two_intervals(run: Run, server: Server) -> None:
    """R02: the link swallows everything, without an end."""

    async def scenario() -> None:
        async with Proxy(server.port).running() as proxy, bus(server, proxy) as it:
            started = asyncio.get_running_loop().time()
            proxy.is_silent = True
            await it.ear.until(lambda: len(it.ear.states) == 2)
            noticed_after = asyncio.get_running_loop().time() - started
            proxy.is_silent = False
            await it.ear.until_subscribed(2)

            assert it.ear.states[1] == "down: health ping was not answered"
            assert noticed_after < 2 * QUICK.ping_interval_seconds + 0.2
            assert publish(server, b"again") == 1

    run(scenario())


def test_quiet_link_stays(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with Proxy(server.port).running() as proxy, bus(server, proxy) as it:
            await asyncio.sleep(5 * QUICK.ping_interval_seconds)

            assert ["subscribed"] == it.ear.states
            assert proxy.connections == 1

    run(scenario())


def test_a_pause_of_our_own_is_not_held_against_the_link(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with bus(server) as it:
            for pause in (0.25, 0.45, 0.65):
                await asyncio.sleep(0.15)
                await stand_still(pause)
            await asyncio.sleep(0.5)

            assert ["subscribed"] == it.ear.states

    run(scenario())


def test_reset_makes_a_new_link(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with bus(server) as it:
            it.subscription.reset("no beacon came back")
            it.subscription.reset("no beacon came back")
            await it.ear.until_subscribed(2)

            assert ["subscribed", "down: no beacon came back", "subscribed"] == it.ear.states

    run(scenario())


def test_published_after_what_was_appended(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with bus(server) as it:
            append = it.client.call("PUBLISH", channel_of(ME), b"append")
            it.subscription.publish(ME, b"notice")
            it.client.call("PUBLISH", channel_of(ME), b"next append")
            await it.ear.until(lambda: len(it.ear.messages) == 3)

            assert [b"append", b"notice", b"next append"] == it.ear.messages
            assert await append == 1

    run(scenario())


@pytest.mark.parametrize("gateway", ["pod-0.0123456789abcdef", "höst-1"])
def test_channel_is_named_as_the_scripts_name_it(gateway: str) -> None:
    assert f"rr:ch:{gateway}".encode() == channel_of(GatewayId(gateway))


def test_every_way_to_connect_carries_a_subscription(run: Run, tmp_path: Path) -> None:
    """Failure catalogue R09, for TLS and a local socket; Sentinel and Cluster have gateways of their own (redis/)."""
    server = Server(tmp_path, "--unixsocket", "valkey.sock")
    server.start()
    certificate, key = write_certificate(tmp_path, "localhost")
    listen = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listen.load_cert_chain(certificate, key)

    async def hears(address: Address) -> None:
        it = Bus(address, server.address)
        async with running(it.subscription.run(ME, it.ear)):
            await it.ear.until_subscribed()
            publish(server, b"hello")
            await it.ear.until(lambda: b"hello" in it.ear.messages)

    async def scenario() -> None:
        await hears(Address.parse(f"unix://{tmp_path}/valkey.sock"))
        async with Proxy(server.port).running(ssl=listen) as proxy:
            await hears(Address.parse(f"rediss://localhost:{proxy.port}/0?ssl_ca_certs={certificate}"))

    try:
        run(scenario())
    finally:
        server.end()
        server.admin.close()
