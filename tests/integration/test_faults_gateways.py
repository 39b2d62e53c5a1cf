"""Gateways that die, freeze and come back in mid-stream: nothing is lost, nothing of them stays (G1, G3, G6)."""

import asyncio
import time
from typing import Any

import pytest

from loadtest.processes import Gateway
from loadtest.publisher import Publisher
from loadtest.stage import Stage, assert_flawless, assert_texts, until_gone
from loadtest.witness import Verdict

pytestmark = pytest.mark.fault


def readers(
    count: int, session: str, gateways: list[Gateway], prefix: str = "r", **fields: Any
) -> list[dict[str, Any]]:
    """Every second one acknowledges."""
    urls = [gateway.url for gateway in gateways]
    return [
        {"name": f"{prefix}{n}", "session": session, "urls": urls, "is_acking": n % 2 == 0, **fields}
        for n in range(count)
    ]


async def judged(stage: Stage, publisher: Publisher, names: list[str] | None = None) -> list[Verdict]:
    """Everybody has everything: flawless, no gap, the same text."""
    await stage.witness.wait(10, names, position=publisher.ledger.head)
    verdicts = await stage.witness.judge(publisher.ledger, names)
    assert_flawless(verdicts)
    assert_texts(verdicts, publisher.ledger)
    return verdicts


async def test_killed_gateways_lose_nothing_and_leave_nothing(stage: Stage) -> None:
    """Failure catalogue R15: after the lease no key of any type mentions the dead; its place is another gateway's."""
    server = stage.server()
    gateways = await stage.start_gateways(3, server.url, routes__lease_seconds="3", routes__renew_seconds="1")
    publisher = stage.publisher(gateways, "s")
    await stage.witness.open(*readers(8, "s", gateways))
    await stage.witness.wait(10, welcomes=1)
    idents = [gateway.ident for gateway in gateways]

    async with stage.flow(publisher, per_second=200):
        for doomed in gateways[:2]:
            await asyncio.sleep(0.5)
            await doomed.kill()
        await asyncio.sleep(0.5)
        await gateways[0].start()
        await asyncio.sleep(0.5)
        await gateways[2].kill()
        await asyncio.sleep(1)

    verdicts = await judged(stage, publisher)
    # Every reader lost at least one socket without a close frame, and every gateway had readers to lose.
    assert sum(verdict.closes.get("1006", 0) for verdict in verdicts) >= 8
    assert publisher.counts["no_answer"] > 0
    assert gateways[0].ident not in idents
    for ident in idents:
        await until_gone(ident, server, 5)


async def test_push_after_a_kill_is_not_called_live(stage: Stage) -> None:
    """Failure catalogue R15: nobody listens any more, so the answer must not say so; the log still has the message."""
    server = stage.server()
    doomed, other = await stage.start_gateways(2, server.url)
    publisher = stage.publisher([other], "s")
    await stage.witness.open(*readers(1, "s", [doomed], is_staying_away=True))
    await stage.witness.wait(5, welcomes=1)
    await publisher.publish({"kind": "data", "n": 1})

    await doomed.kill()
    await publisher.publish({"kind": "data", "n": 2})

    assert publisher.live == [True, False]
    await stage.witness.open(*readers(1, "s", [other], prefix="late"))
    await judged(stage, publisher, ["late0"])


async def test_frozen_gateways_catch_up_within_and_beyond_the_lease(stage: Stage) -> None:
    """SIGSTOP for 10 s: one gateway keeps its leases (60 s), the other one's are over (3 s) when it goes on.

    Failure catalogue R12: a client of the second one has moved on meanwhile; the late gateway must not take it back.
    Others gave up on it, and come back to whichever gateway answers them.
    """
    server = stage.server()
    patient, late, other = await asyncio.gather(
        stage.gateway(server.url, routes__lease_seconds="60", routes__renew_seconds="20"),
        stage.gateway(server.url, routes__lease_seconds="3", routes__renew_seconds="1"),
        stage.gateway(server.url),
    )
    publisher = stage.publisher([other], "s")
    await stage.witness.open(
        *readers(4, "s", [patient], prefix="patient"),
        *readers(4, "s", [late], prefix="late"),
        *readers(2, "s", [other], prefix="other"),
        *readers(4, "s", [late, other], prefix="left"),
        *readers(1, "s", [late], prefix="old", client="mover", is_staying_away=True),
    )
    await stage.witness.wait(10, welcomes=1)
    for ident in (patient.ident, late.ident):
        assert ident.encode() in server.ask("GET", "rr:{default:s}:gws")

    async with stage.flow(publisher, per_second=50):
        await asyncio.sleep(0.3)
        patient.freeze()
        late.freeze()
        await asyncio.sleep(4.5)
        # The lease of the frozen one is over; its client comes back elsewhere, with the same client id.
        await stage.witness.open(*readers(1, "s", [other], prefix="new", client="mover"))
        await stage.witness.wait(5, ["new0"], welcomes=1)
        left = [f"left{n}" for n in range(4)]
        await stage.witness.ask("drop", names=left)
        before = publisher.ledger.head
        await asyncio.sleep(5.5)
        patient.thaw()
        late.thaw()
        await asyncio.sleep(1)
        assert publisher.ledger.head > before + 100

    lasting = [f"{prefix}{n}" for prefix, count in (("patient", 4), ("late", 4), ("other", 2)) for n in range(count)]
    verdicts = await judged(stage, publisher, [*lasting, "new0"])
    assert sum(verdict.count("drops") for verdict in await judged(stage, publisher, left)) == 4
    await stage.witness.wait(10, ["old0"], ended=True)
    old, new = await stage.witness.judge(names=["old0", "new0"])
    assert old.closes == {"4409": 1}
    assert not old.findings
    assert not new.closes
    # Nobody of those who stayed was closed for it: their gateway claimed their routes again.
    assert not any(verdict.closes for verdict in verdicts)
    route = server.ask("HGET", "rr:{default:s}:routes", "mover")
    assert other.ident.encode() in route
    assert new.raw["connection"].encode() in route


async def test_storm_of_resets_is_healed_by_cursor(stage: Stage) -> None:
    """Failure catalogue K09: 100 clients are cut in the same millisecond, and come back spread, each where it was."""
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url)
    sessions = [f"s{n % 4}" for n in range(100)]
    publishers = {name: stage.publisher(gateways, name) for name in sorted(set(sessions))}
    urls = [gateway.url for gateway in gateways]
    specs = [
        {"name": f"r{n}", "session": name, "urls": urls, "is_acking": n % 2 == 0} for n, name in enumerate(sessions)
    ]
    await stage.witness.open(*specs)
    await stage.witness.wait(10, welcomes=1)

    stop = asyncio.Event()

    async def publish(publisher: Publisher) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            await publisher.publish({"kind": "data", "n": number})
            await asyncio.sleep(0.1)

    tasks = [asyncio.create_task(publish(publisher)) for publisher in publishers.values()]
    await asyncio.sleep(0.5)
    await stage.witness.ask("drop", names=[spec["name"] for spec in specs])
    dropped_at = time.monotonic()
    await stage.witness.wait(10, welcomes=2)
    stop.set()
    await asyncio.gather(*tasks)

    returns = []
    for name, publisher in publishers.items():
        names = [str(spec["name"]) for spec in specs if spec["session"] == name]
        for verdict in await judged(stage, publisher, names):
            assert verdict.count("drops") == 1
            returns += [event["at"] - dropped_at for event in verdict.events("welcome")[1:]]
    assert len(returns) == 100
    assert max(returns) - min(returns) > 0.03
