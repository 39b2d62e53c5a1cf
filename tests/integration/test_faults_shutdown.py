"""SIGTERM: told first, closed in slots, served meanwhile, gone in time, with nothing left behind (C7)."""

import asyncio
import json
import time
from typing import Any

import pytest

from loadtest.plain_http import NoAnswer, ask_once
from loadtest.processes import Gateway
from loadtest.stage import Stage, assert_flawless, assert_texts, traces_of
from loadtest.wire import Broken, Op, Refused, WebSocket

pytestmark = pytest.mark.fault

KUBELET_SECONDS = 1.0
"""Its time-out for one probe by default."""
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Version": "13",
}


def spec(name: str, gateways: list[Gateway], **fields: Any) -> dict[str, Any]:
    return {"name": name, "session": "s", "urls": [gateway.url for gateway in gateways], **fields}


class Probes:
    """Both endpoints every 100 ms until the process is gone, as a kubelet does."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.live: list[int] = []
        self.ready: list[int] = []
        self.slowest_seconds = 0.0
        self.reasons: set[str] = set()

    async def run(self) -> None:
        while self._gateway.is_running:
            began = time.monotonic()
            try:
                live = await self._gateway.admin("/livez", timeout_seconds=2)
                self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
                ready = await self._gateway.admin("/readyz", timeout_seconds=2)
            except NoAnswer:
                if self._gateway.is_running:
                    await asyncio.sleep(0.02)
                continue
            self.live.append(live.status)
            self.ready.append(ready.status)
            self.reasons |= {word for word in ("draining", "redis", "bus") if word in ready.body.decode()}
            await asyncio.sleep(0.1)


async def test_drain_tells_closes_in_slots_and_serves_meanwhile(stage: Stage) -> None:
    """Failure catalogue K01, K02, K05: 25 clients, settle 1.2 s, window 4 s, ten closes a second."""
    server = stage.server()
    gateway = await stage.gateway(
        server.url,
        drain__settle_seconds="1.2",
        drain__window_seconds="4",
        drain__pace_ms="100",
        drain__deadline_seconds="12",
    )
    other = await stage.gateway(server.url)
    publisher = stage.publisher([other], "s")
    names = [f"r{n}" for n in range(25)]
    await stage.witness.open(
        *(spec(name, [gateway], is_acking=n % 2 == 0, is_staying_away=True) for n, name in enumerate(names))
    )
    await stage.witness.wait(10, welcomes=1)
    probes = Probes(gateway)

    began = time.monotonic()
    gateway.terminate()
    await asyncio.sleep(0.1)
    probing = asyncio.create_task(probes.run())
    refused = await ask_once(gateway.url, "GET", "/v1/sessions/s/ws?client=late", headers=UPGRADE)
    await asyncio.sleep(0.9)
    seqs = await publisher.publish({"kind": "data", "n": 1})
    await stage.witness.wait(3, position=seqs[0])
    code = await gateway.wait(12)
    seconds = time.monotonic() - began
    await probing

    verdicts = await stage.witness.judge(publisher.ledger)
    assert_flawless(verdicts)
    assert code == 0
    assert seconds < 1.2 + 4 + 4
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) >= 1
    hints = [event["after_ms"] for verdict in verdicts for event in verdict.events("reconnect_later")]
    closes = sorted(event["at"] - began for verdict in verdicts for event in verdict.events("closed"))
    assert len(hints) == 25
    assert len(set(hints)) > 12
    assert all(verdict.closes == {"1012": 1} for verdict in verdicts)
    for at in closes:
        assert sum(at <= other < at + 0.25 for other in closes) <= 12  # of 25
    assert probes.live.count(200) == len(probes.live) > 20
    assert probes.ready.count(503) == len(probes.ready)
    assert "draining" in probes.reasons
    assert probes.slowest_seconds < KUBELET_SECONDS
    assert traces_of(gateway.ident, server) == []


async def test_five_hundred_sockets_are_closed_before_the_deadline(stage: Stage) -> None:
    """Failure catalogue K05: the deadline wins over the pace, and probes are answered all the while."""
    gateway = await stage.gateway(
        stage.server().url, drain__window_seconds="1.5", drain__pace_ms="100", admission__new_per_second="0"
    )
    answer = await stage.witness.ask("storm", urls=[gateway.url], session="s", count=500, at_once=100, seconds=10)
    assert answer["welcomed"] == 500
    probes = Probes(gateway)

    began = time.monotonic()
    gateway.terminate()
    await asyncio.sleep(0.05)
    probing = asyncio.create_task(probes.run())
    fates = await stage.witness.ask("watch_ends", seconds=8)
    code = await gateway.wait(8)
    await probing

    assert code == 0
    assert time.monotonic() - began < 6.5  # 50 s at that pace; the deadline less its margin is 6 s
    assert fates["closes"] == {"1012": 500}
    assert fates["told"] == 500
    assert probes.live.count(200) == len(probes.live) > 3
    assert probes.slowest_seconds < KUBELET_SECONDS


async def test_second_sigterm_shortens_the_drain(stage: Stage) -> None:
    """Failure catalogue A05: 100 idle sockets and five seconds for them; hurried it is faster and just as clean."""
    gateway = await stage.gateway(
        stage.server().url, drain__settle_seconds="1", drain__window_seconds="4", drain__pace_ms="100"
    )
    await stage.witness.ask("storm", urls=[gateway.url], session="s", count=100, at_once=50, seconds=10)

    began = time.monotonic()
    gateway.terminate()
    await asyncio.sleep(0.3)
    gateway.terminate()
    fates = await stage.witness.ask("watch_ends", seconds=8)
    code = await gateway.wait(8)
    seconds = time.monotonic() - began

    assert code == 0
    assert fates["closes"] == {"1012": 100}
    assert fates["told"] == 100
    assert seconds < 4  # and not 5


async def test_client_that_refuses_to_close_keeps_nobody(stage: Stage) -> None:
    """Failure catalogue K03, A03: one never answers, one sends on, one does not even read; the deadline holds."""
    server = stage.server()
    gateway = await stage.gateway(server.url, drain__deadline_seconds="3", drain__margin_seconds="1")
    publisher = stage.publisher([gateway], "s")
    path = "/v1/sessions/s/ws?client="
    silent = await WebSocket.open(gateway.url, path + "silent")
    chatty = await WebSocket.open(gateway.url, path + "chatty")
    blocked = await WebSocket.open(gateway.url, path + "blocked", receive_buffer_bytes=2_048)
    blocked.pause()
    for _ in range(10):
        await publisher.publish({"kind": "data", "text": "f" * 60_000})

    async def chat() -> None:
        while gateway.is_running:
            chatty.send_text(json.dumps({"type": "control", "payload": {"kind": "ping"}}))
            await asyncio.sleep(0.1)

    began = time.monotonic()
    gateway.terminate()
    chatting = asyncio.create_task(chat())
    code = await gateway.wait(8)
    await chatting

    assert code == 0
    assert time.monotonic() - began < 4.5  # each of them would take 5 s to be cut
    assert traces_of(gateway.ident, server) == []
    for ws in (silent, chatty, blocked):
        ws.reset()


async def test_rolling_restart_under_load_loses_nothing(stage: Stage) -> None:
    """Three gateways, each SIGTERMed and started again while text flows: no client sees anything but 1012."""
    server = stage.server()
    gateways = await stage.start_gateways(3, server.url, drain__settle_seconds="0.2")
    publishers = [stage.publisher(gateways, name) for name in ("s", "t")]
    names = {name: [f"{name}{n}" for n in range(8)] for name in ("s", "t")}
    await stage.witness.open(
        *(
            {**spec(reader, gateways, is_acking=n % 2 == 0), "session": session}
            for session, readers in names.items()
            for n, reader in enumerate(readers)
        )
    )
    await stage.witness.wait(10, welcomes=1)

    codes = []
    async with stage.flow(publishers[0], per_second=150), stage.flow(publishers[1], per_second=150):
        for gateway in gateways:
            gone = gateway.ident
            gateway.terminate()
            codes.append(await gateway.wait(8))
            assert traces_of(gone, server) == []
            await gateway.start()
        await asyncio.sleep(0.5)

    for publisher in publishers:
        await stage.witness.wait(10, names[publisher.session], position=publisher.ledger.head)
        verdicts = await stage.witness.judge(publisher.ledger, names[publisher.session])
        assert_flawless(verdicts)
        assert_texts(verdicts, publisher.ledger)
        assert all(verdict.closes.keys() <= {"1012"} for verdict in verdicts)
        assert sum(verdict.closes.get("1012", 0) for verdict in verdicts) >= 8
    assert codes == [0, 0, 0]


@pytest.mark.parametrize("fault", ["frozen", "dead"])
async def test_drain_without_redis_ends_in_time(stage: Stage, fault: str) -> None:
    """Nothing can be released then; the leases do it. Clients are told and closed all the same."""
    server = stage.server()
    gateway = await stage.gateway(server.url, drain__deadline_seconds="5")
    await stage.witness.ask("storm", urls=[gateway.url], session="s", count=20, at_once=20, seconds=5)
    if fault == "frozen":
        server.freeze()
    else:
        server.kill()

    began = time.monotonic()
    gateway.terminate()
    fates = await stage.witness.ask("watch_ends", seconds=8)
    code = await gateway.wait(10)

    assert code == 0
    assert time.monotonic() - began < 7
    assert fates["closes"] == {"1012": 20}
    if fault == "frozen":
        server.thaw()


async def test_close_codes_arrive_as_they_were_chosen(stage: Stage) -> None:
    """Failure catalogue A04: 100 sockets, half of them in the middle of a flood, closed from another task with 4404."""
    gateway = await stage.gateway(stage.server().url)
    publisher = stage.publisher([gateway], "s")
    idle = stage.publisher([gateway], "idle")
    await idle.publish({"kind": "data"})
    await stage.witness.open(
        *(spec(f"busy{n}", [gateway]) for n in range(50)),
        *({**spec(f"idle{n}", [gateway]), "session": "idle"} for n in range(50)),
    )
    await stage.witness.wait(10, welcomes=1)
    await publisher.publish(*({"kind": "data", "text": "g" * 1_000} for _ in range(100)))
    answers = [await ask_once(gateway.url, "DELETE", f"/v1/sessions/{session}") for session in ("s", "idle")]
    await stage.witness.wait(5, ended=True)

    verdicts = await stage.witness.judge()
    assert [answer.status for answer in answers] == [200, 200]
    assert {tuple(verdict.closes.items()) for verdict in verdicts} == {(("4404", 1),)}
    assert not any(verdict.findings for verdict in verdicts)
    # Deleted for producers and for newcomers as well.
    gone = await ask_once(gateway.url, "POST", "/v1/sessions/s/push", {"payload": {"kind": "data"}})
    assert gone.status == 410
    with pytest.raises(Refused) as refused:
        await WebSocket.open(gateway.url, "/v1/sessions/s/ws?client=new")
    assert refused.value.answer.status == 404


async def test_closes_end_within_the_close_timeout(stage: Stage) -> None:
    """Failure catalogue A03: three bad peers after our close frame; a good one is not kept waiting by them."""
    gateway = await stage.gateway(stage.server().url)
    publisher = stage.publisher([gateway], "s")
    path = "/v1/sessions/s/ws?client="
    silent = await WebSocket.open(gateway.url, path + "silent")
    chatty = await WebSocket.open(gateway.url, path + "chatty")
    blocked = await WebSocket.open(gateway.url, path + "blocked", receive_buffer_bytes=2_048)
    good = await WebSocket.open(gateway.url, path + "good")
    blocked.pause()
    for _ in range(6):
        await publisher.publish({"kind": "data", "text": "h" * 60_000})

    began = time.monotonic()
    assert (await ask_once(gateway.url, "DELETE", "/v1/sessions/s")).status == 200
    code = 0
    while not code:
        code = next((frame.close_code for frame in await good.frames() if frame.op is Op.CLOSE), 0)
    good.send_close(code)
    with pytest.raises(Broken, match="ended without"):
        await good.frames()
    assert time.monotonic() - began < 3  # the bad ones get 5 s
    while await gateway.metric("connections"):
        assert time.monotonic() - began < 10, "a bad peer keeps its connection"
        chatty.send_text('{"type":"control","payload":{"kind":"ping"}}')
        await asyncio.sleep(0.1)

    assert code == 4404
    for ws in (silent, chatty, blocked, good):
        ws.reset()
