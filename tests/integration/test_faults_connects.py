"""Many connect while Redis stands still: nobody waits for ever, what waits is seen, and all is well when it goes on."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from loadtest.plain_http import Answer, ask_once
from loadtest.processes import Gateway
from loadtest.publisher import delta
from loadtest.scenes import arrived, flawless, seat
from loadtest.stage import Stage

pytestmark = pytest.mark.fault

CLIENTS = 300
ANSWER_SECONDS = 40.0
"""5 s for a turn and three calls of Redis of 2 s; what is more is this machine's."""

HANDSHAKES = {"server__max_handshakes": "20"}
MEMORY_FOR_ONE = {"limits__recovery_memory_bytes": "1048576", "limits__replay_page_bytes": "1048576"}


async def connect(gateway: Gateway, client: str) -> Answer:
    path = f"/v1/sessions/new-{client}/messages?client={client}&wait=0.05"
    return await ask_once(gateway.url, "GET", path, timeout_seconds=ANSWER_SECONDS)


async def until(gateway: Gateway, name: str, is_wanted: Callable[[float], bool]) -> None:
    """TimeoutError when the metric never is what is wanted."""
    async with asyncio.timeout(ANSWER_SECONDS):
        while not is_wanted(await gateway.metric(name)):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("settings", "reason"), [(HANDSHAKES, "handshakes"), (MEMORY_FOR_ONE, "recoveries")])
@pytest.mark.timeout(180)
async def test_connects_to_a_frozen_redis_are_refused_in_time_and_later_ones_come_in(
    stage: Stage, settings: dict[str, str], reason: str
) -> None:
    """The few that have a turn are told that Redis is away, all others that the gateway is busy, each its own time."""
    server = stage.server()
    gateway = await stage.gateway(server.url, **settings)
    publisher = stage.publisher([gateway], "s")
    names = await seat(stage, "s", [gateway], 4)
    await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, names)

    server.freeze()
    crowd = [asyncio.create_task(connect(gateway, f"c{number}")) for number in range(CLIENTS)]
    try:
        await until(gateway, "connects_waiting", lambda count: count > CLIENTS / 2)
        answers = await asyncio.gather(*crowd)
    finally:
        server.thaw()
    await until(gateway, "connects_waiting", lambda count: count == 0)
    await until(gateway, "redis_up", bool)
    afterwards = await asyncio.gather(*(connect(gateway, f"later-{number}") for number in range(20)))

    assert Counter(answer.status for answer in answers) == {503: CLIENTS}
    busy = [answer for answer in answers if answer.error_code == "busy"]
    assert {answer.error_code for answer in answers} <= {"busy", "unavailable"}
    assert len(busy) > CLIENTS / 2
    reasons = Counter(answer.error_details["reason"] for answer in busy)
    assert reasons[reason] > CLIENTS / 2
    assert reasons.keys() <= {"handshakes", "recoveries"}
    assert all(2_000 <= answer.error_details["after_ms"] <= 4_000 for answer in busy)
    assert {"3", "4"} <= {answer.headers["retry-after"] for answer in busy}
    assert await gateway.metric("refused_new_total", reason=reason) == reasons[reason]
    assert Counter(answer.status for answer in afterwards) == {200: 20}

    await publisher.publish(delta("r", stage.rng))
    verdicts = await flawless(stage, publisher.ledger, names)
    assert not any(verdict.closes for verdict in verdicts)
