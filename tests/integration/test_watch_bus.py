"""A subscription that answers pings and delivers nothing, and leases that survive a failed renewal (R02, R14)."""

import asyncio
import time

import pytest

from loadtest.publisher import delta
from loadtest.scenes import flawless, seat
from loadtest.stage import Stage
from tests.integration.watched_socket import watch

pytestmark = pytest.mark.fault

BEACON_SECONDS = 0.6
"""Two of them are more than a busy machine stalls."""


async def test_a_mute_subscription_is_found_by_its_beacons_and_replaced(stage: Stage) -> None:
    """Only the beacons are lost: TCP lives, Redis answers PING, messages would come. One is forgiven, two are not."""
    server = stage.server()
    proxy = await stage.proxy(server)
    gateway = await stage.gateway(proxy.url, bus__beacon_interval_seconds=str(BEACON_SECONDS))
    publisher = stage.publisher([gateway], "s")
    names = await seat(stage, "s", [gateway], 2)

    def is_beacon(payload: bytes) -> bool:
        return payload.startswith(b"1b")

    async with stage.flow(publisher, per_second=50):
        proxy.drop_message(is_beacon)
        await asyncio.wait_for(proxy.hit.wait(), 5)
        await asyncio.sleep(3 * BEACON_SECONDS)
        forgiven = await gateway.metric("bus_reconnects_total")

        for _ in range(2):
            proxy.drop_message(is_beacon)
        began = time.monotonic()
        while await gateway.metric("bus_reconnects_total") == forgiven:
            assert time.monotonic() - began < 8 * BEACON_SECONDS + 1, "nobody noticed"
            await asyncio.sleep(0.02)

    assert forgiven == 0
    assert await gateway.metric("bus_reconnects_total") == 1
    assert await gateway.metric("subscription_up") == 1
    assert proxy.counts["messages_dropped"] == 3
    assert "beacon" in gateway.log()
    await flawless(stage, publisher.ledger, names)


async def test_a_lease_survives_renewals_that_fail(stage: Stage) -> None:
    """Lease 3 s, renewed each second, idle for 9 s; for 1.5 s of them Redis is out of reach."""
    server = stage.server()
    proxy = await stage.proxy(server)
    settings = {"routes__lease_seconds": "3", "routes__renew_seconds": "1"}
    gateway = await stage.gateway(proxy.url, **settings)
    async with watch(gateway.url) as socket:
        began = time.monotonic()
        seen = []
        while (passed := time.monotonic() - began) < 9:
            if not proxy.is_refusing and 4 < passed < 5.5:
                proxy.is_refusing = True
                proxy.cut()
            elif proxy.is_refusing and passed > 5.5:
                proxy.is_refusing = False
            seen.append(server.ask("HEXISTS", "rr:{default:s}:routes", "c"))
            await asyncio.sleep(0.1)

        assert set(seen) == {1}
        assert socket.close is None
        assert proxy.counts["refused"] >= 1
        assert (await stage.publisher([gateway], "s").publish(delta("r", stage.rng))) == [1]
        await socket.until(lambda it: it.texts(), 2)
