"""Redis is full and refuses to grow (`noeviction`): producers hear 503, sockets stay, and it passes by itself."""

import asyncio

import pytest

from loadtest.plain_http import Answer, ask_once
from loadtest.processes import Gateway
from loadtest.publisher import delta
from loadtest.scenes import arrived, flawless, seat
from loadtest.stage import Stage

pytestmark = pytest.mark.fault

ROOM_BYTES = 3 * 1024**2
QUICK = {"redis__deadline_seconds": "1", "redis__call_timeout_seconds": "0.8"}
SHORT_LEASES = {"routes__lease_seconds": "3", "routes__renew_seconds": "1", "routes__previous_seconds": "2"}


async def test_full_server_harms_no_socket_and_recovers_by_itself(stage: Stage) -> None:
    """It is filled by other sessions until it refuses; when they are deleted everything goes on."""
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url, **QUICK, **SHORT_LEASES)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)
    for _ in range(10):
        await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, names)

    server.ask("CONFIG", "SET", "maxmemory", str(server.info("memory")["used_memory"] + ROOM_BYTES))
    refusal, fillers = await _fill(gateways[0])
    # To the last byte: from here on the smallest write is one too many.
    server.ask("CONFIG", "SET", "maxmemory", str(server.info("memory")["used_memory"] - 1))
    # Longer than every lease: routes and gateway records are renewed although there is no memory.
    await asyncio.sleep(4)
    ready = [(await gateway.admin("/readyz")).status for gateway in gateways]
    shown = [len((await gateway.admin("/admin/cluster")).json()["gateways"]) for gateway in gateways]
    still_refused = await ask_once(gateways[1].url, "POST", "/v1/sessions/s/push", {"payload": _big()})
    for filler in fillers:
        deleted = await ask_once(gateways[0].url, "DELETE", f"/v1/sessions/{filler}")
        assert deleted.status == 200, deleted.body
    for _ in range(10):
        await publisher.publish(delta("r", stage.rng))

    verdicts = await flawless(stage, publisher.ledger, names)
    assert (503, "unavailable") == (refusal.status, refusal.error_code)
    assert "retry-after" in refusal.headers
    assert still_refused.status == 503
    assert [200, 200] == ready
    assert [2, 2] == shown
    assert not any(verdict.closes for verdict in verdicts)


async def _fill(gateway: Gateway) -> tuple[Answer, list[str]]:
    """(the first refusal, the sessions that hold the memory)."""
    fillers: list[str] = []
    for number in range(200):
        for _ in range(8):
            answer = await ask_once(gateway.url, "POST", f"/v1/sessions/filler-{number}/push", {"payload": _big()})
            if answer.status != 200:
                return answer, fillers
            if f"filler-{number}" not in fillers:
                fillers.append(f"filler-{number}")
    raise AssertionError("the server took everything")


def _big() -> dict[str, str]:
    return {"kind": "note", "text": "x" * 60_000}
