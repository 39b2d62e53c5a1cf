"""Below the log nothing is lost that can be rebuilt: snapshots, kept pushes, texts after lost writes (G4)."""

import asyncio
import hashlib
import random
from typing import Any

import pytest

from loadtest.plain_http import ask_once
from loadtest.publisher import Publisher, delta
from loadtest.stage import Stage, assert_flawless
from loadtest.truth import digest

SMALL = {"retention__max_messages": "100"}


class Text:
    """A run as its producer has it."""

    def __init__(self, run: str, rng: random.Random) -> None:
        self.run = run
        self.rng = rng
        self.text = ""

    def more(self, size: int = 3) -> dict[str, Any]:
        payload = delta(self.run, self.rng, size)
        self.text += payload["text"]
        return payload

    def end(self) -> dict[str, Any]:
        data = self.text.encode()
        sums = {"bytes": len(data), "code_points": len(self.text), "sha256": hashlib.sha256(data).hexdigest()}
        return {"kind": "run_end", "run": self.run, "reason": "complete", **sums}


async def write(publisher: Publisher, text: Text, count: int, size: int = 3) -> None:
    for first in range(0, count, 20):
        await publisher.publish(*(text.more(size) for _ in range(min(20, count - first))))


@pytest.mark.parametrize("is_acking", [False, True])
async def test_a_cursor_older_than_the_log_gets_every_byte(stage: Stage, is_acking: bool) -> None:
    gateways = await stage.start_gateways(2, stage.server().url, **SMALL)
    publisher, text = stage.publisher(gateways, "s"), Text("r", stage.rng)
    await publisher.publish({"kind": "run_start", "run": "r"})
    await write(publisher, text, 500, 10)
    line = publisher.ledger.line
    await stage.witness.open(
        {"name": "old", "session": "s", "urls": [gateways[0].url], "cursor": f"{line}.7", "is_acking": is_acking},
        {"name": "start", "session": "s", "urls": [gateways[1].url], "begins": "start", "is_acking": is_acking},
        {"name": "new", "session": "s", "urls": [gateways[1].url], "cursor": f"{line}.450"},
    )
    await stage.witness.wait(10, position=501)
    await write(publisher, text, 50)
    await publisher.publish(text.end())
    await stage.witness.wait(10, position=publisher.ledger.head)

    verdicts = {verdict.name: verdict for verdict in await stage.witness.judge(publisher.ledger)}
    assert_flawless(list(verdicts.values()))
    assert [verdicts[name].raw["digests"]["r"] for name in ("old", "start")] == [digest(text.text)] * 2
    assert [verdicts[name].raw["resumed"] for name in ("old", "start", "new")] == [["snapshot"], ["fresh"], ["full"]]
    assert [verdicts[name].raw["compared"] for name in ("old", "start")] == [["r"]] * 2
    assert verdicts["old"].raw["missing"] == []


async def test_what_no_text_stands_for_is_the_only_gap(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url, **SMALL)
    publisher, text = stage.publisher([gateway], "s"), Text("r", stage.rng)
    await publisher.publish({"kind": "data", "n": 1}, {"kind": "data", "n": 2}, {"kind": "run_start", "run": "r"})
    await write(publisher, text, 300)
    await stage.witness.open(
        {"name": "a", "session": "s", "urls": [gateway.url], "cursor": f"{publisher.ledger.line}.1"},
        {"name": "b", "session": "s", "urls": [gateway.url], "cursor": f"{publisher.ledger.line}.2"},
    )
    await stage.witness.wait(10, position=publisher.ledger.head)

    first, second = await stage.witness.judge(publisher.ledger)
    assert_flawless([first, second], may_gap=True)
    assert first.gap_ranges == [(2, 2, "evicted")]
    assert second.gap_ranges == []
    assert [v.raw["digests"]["r"] for v in (first, second)] == [digest(text.text)] * 2


async def test_a_reader_that_falls_past_retention_is_rebuilt(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url, **SMALL, limits__unsent_bytes="16 KiB")
    publisher, text = stage.publisher([gateway], "s"), Text("r", stage.rng)
    await publisher.publish({"kind": "run_start", "run": "r"})
    await stage.witness.open(
        {"name": "slow", "session": "s", "urls": [gateway.url], "begins": "start", "receive_buffer_bytes": 4_096}
    )
    await stage.witness.wait(10, position=1)
    await stage.witness.ask("hold", names=["slow"])
    await write(publisher, text, 1_000, 60)
    await publisher.publish(text.end())
    await stage.witness.ask("go_on", names=["slow"])
    await stage.witness.wait(20, position=publisher.ledger.head)

    verdicts = await stage.witness.judge(publisher.ledger)
    assert_flawless(verdicts)
    assert verdicts[0].raw["digests"]["r"] == digest(text.text)
    assert verdicts[0].raw["rebuilt"] > 0
    assert verdicts[0].raw["compared"] == ["r"]
    assert not verdicts[0].closes


@pytest.mark.parametrize("with_lost_writes", [False, True])
async def test_snapshots_at_random_moments_equal_the_text(stage: Stage, with_lost_writes: bool) -> None:
    """Two runs at 500 appends a second; clients come from the start all the time; once a server that lost writes."""
    server = stage.server(is_persistent=True)
    proxied = server
    gateways = await stage.start_gateways(2, proxied.url, **SMALL)
    publisher = stage.publisher(gateways, "s")
    texts = [Text("r1", stage.rng), Text("r2", stage.rng)]
    await publisher.publish({"kind": "run_start", "run": "r1"}, {"kind": "run_start", "run": "r2"})
    names: list[str] = []

    async def come() -> None:
        for number in range(25):
            names.append(f"c{number}")
            url = stage.rng.choice(gateways).url
            await stage.witness.open({"name": names[-1], "session": "s", "urls": [url], "begins": "start"})
            await asyncio.sleep(stage.rng.uniform(0.02, 0.15))

    coming = asyncio.create_task(come())
    while not coming.done():
        await publisher.publish(*(stage.rng.choice(texts).more(5) for _ in range(10)))
        await asyncio.sleep(0.02)
        if with_lost_writes and len(names) == 12:
            with_lost_writes = False
            await stage.witness.wait(10, names, position=publisher.ledger.head)
            server.kill()
            await asyncio.to_thread(server.start)
    await coming
    for text in texts:
        await publisher.publish(text.end())
    await stage.witness.wait(20, names, position=publisher.ledger.head)

    verdicts = await stage.witness.judge(publisher.ledger, names)
    assert_flawless(verdicts)
    wanted = {text.run: digest(text.text) for text in texts}
    assert [verdict.raw["digests"] for verdict in verdicts] == [wanted] * len(names)
    assert sum(verdict.raw["rebuilt"] > 0 for verdict in verdicts) > len(names) // 2
    assert all(verdict.raw["compared"] == ["r1", "r2"] for verdict in verdicts if verdict.raw["rebuilt"])


async def test_a_kept_push_waits_for_who_connects_later(stage: Stage) -> None:
    """Ten minutes later: the log has expired, the push has not (simulated: the log's key goes)."""
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url)
    publisher, text = stage.publisher(gateways, "s"), Text("r", stage.rng)
    await publisher.publish({"kind": "run_start", "run": "r"})
    await write(publisher, text, 20)
    pushed = await ask_once(
        gateways[0].url,
        "POST",
        "/v1/sessions/s/push",
        {"payload": {"kind": "data", "text": "the report is ready"}, "expires_in": 600},
    )
    assert pushed.status == 200, pushed.body
    kept_seq = pushed.json()["results"][0]["seq"]
    await publisher.publish(text.more())
    server.ask("DEL", "rr:{default:s}:log")
    line = publisher.ledger.line
    await stage.witness.open(
        {"name": "live", "session": "s", "urls": [gateways[0].url], "begins": "live"},
        {"name": "old", "session": "s", "urls": [gateways[1].url], "cursor": f"{line}.5"},
    )
    await stage.witness.wait(10, position=publisher.ledger.head)
    await publisher.publish(text.more(), text.end())
    await stage.witness.wait(10, position=publisher.ledger.head)

    live, old = await stage.witness.judge()
    seen = [f for f in (await stage.witness.ask("frames", name="live"))["frames"] if f[2]["kind"] == "data"]
    assert pushed.json()["live"] is False
    assert_flawless([live, old])
    assert [(first, seq, p["text"]) for first, seq, p in seen] == [(kept_seq, kept_seq, "the report is ready")]
    assert old.raw["digests"]["r"] == digest(text.text)
    assert old.raw["missing"] == []
