"""The stage of the store's tests for runs: a writer, and a reader that rebuilds a text as a client does."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from gateway.adapters.resp import Address
from gateway.domain.wire.entry import Item
from gateway.domain.wire.ids import ClientId, GatewayId, RunId
from gateway.domain.wire.own_identity import run_writer
from gateway.domain.wire.payload import make_item
from gateway.ports import (
    EndedBy,
    OpenRun,
    ProducerRef,
    RunInfo,
    RunProgress,
    RunRefused,
    RunWriter,
    SnapshotPlan,
    Stopped,
    StopRun,
    Track,
)
from gateway.settings import Settings
from tests.integration.store.exchange_stage import ExchangeStage, exchanging

GATEWAY = GatewayId("gw-a")


def code(run: str, text: str) -> Item:
    return make_item({"kind": "code_block", "run": run, "block": 1, "language": "py", "text": text})


class RunStage:
    """Short ways around one ExchangeStage."""

    def __init__(self, stage: ExchangeStage) -> None:
        self.stage = stage
        self.ref, self.runs, self.admin = stage.ref, stage.runs, stage.admin
        self.key, self.put, self.append, self.claimed = stage.key, stage.put, stage.append, stage.claimed

    def open_request(self, run: str = "r", **more: Any) -> OpenRun:
        values: dict[str, Any] = {
            "start_body": b'{"kind":"run_start","run":"%b"' % run.encode(),
            "may_start": True,
            "may_attach": True,
            "due_ms": self.stage.now_ms(),
            "gateway": GATEWAY,
        }
        return OpenRun(self.ref, RunId(run), **(values | more))

    async def try_open(self, run: str = "r", **more: Any) -> RunWriter | RunRefused:
        return await self.runs.open_run(self.open_request(run, **more))

    async def opened(self, run: str = "r", **more: Any) -> "Writer":
        writer = await self.try_open(run, **more)
        assert isinstance(writer, RunWriter), writer
        return Writer(self, run, writer, ProducerRef(run_writer(RunId(run)), writer.epoch))

    async def info(self, run: str = "r") -> RunInfo:
        info = await self.runs.run(self.ref, RunId(run))
        assert info is not None
        return info

    async def names(self) -> list[str]:
        return [info.run for info in await self.runs.runs(self.ref)]

    async def stop(self, run: str = "r", client: str | None = None, **more: Any) -> Stopped | RunRefused:
        values: dict[str, Any] = {"reason": EndedBy.INTERRUPTED, "due_ms": self.stage.now_ms()} | more
        return await self.runs.stop_run(
            StopRun(self.ref, RunId(run), client=None if client is None else ClientId(client), **values)
        )

    async def stopped(self, run: str = "r", client: str | None = None, **more: Any) -> Stopped:
        outcome = await self.stop(run, client, **more)
        assert isinstance(outcome, Stopped), outcome
        return outcome

    async def plan(self) -> SnapshotPlan:
        plan = await self.runs.snapshot(self.ref)
        assert plan is not None
        return plan

    async def void(self) -> int:
        return (await self.plan()).log.void

    async def text(self, run: str = "r", track: Track = Track.TEXT, start: int = 0, until: int = 1 << 40) -> str:
        """By pages of 128 KiB, as a snapshot is sent."""
        read = b""
        while start + len(read) < until:
            page = await self.runs.run_text(self.ref, RunId(run), track, start + len(read), until, 128 * 1024)
            if not page.text:
                break
            read += page.text
        return read.decode()

    async def rebuilt(self) -> tuple[dict[str, str], int]:
        """Each run's text by the rule of design.md 4 (snapshots below the log, then the retained log, overlaps sliced),
        and the seq up to which. Begins again when the log is trimmed meanwhile, as a client is made to."""
        while True:
            plan = await self.plan()
            texts: dict[str, bytes] = {}
            for brief in plan.runs:
                texts[brief.run] = (await self.text(brief.run, until=brief.text_until)).encode()
                assert len(texts[brief.run]) == brief.text_until, "it only grows"
            position = await self.replayed(texts, plan.log.lost, plan.log.head)
            if position is not None:
                return {run: text.decode() for run, text in texts.items()}, position

    async def replayed(self, texts: dict[str, bytes], position: int, head: int) -> int | None:
        """What the log has above `position`, at least up to `head`, is applied to `texts`.

        Returns where that ends; None: there is a hole.
        """
        while position < head and (page := await self.stage.store.page(self.ref, position, 32 * 1024)) and page.entries:
            if page.entries[0].seq != position + 1:
                return None
            for entry in page.entries:
                if entry.at is None or entry.cls == b"t":
                    continue
                payload = json.loads(entry.frame)["payload"]
                known = texts.setdefault(payload["run"], b"")
                assert entry.at <= len(known), "a hole in a text"
                beyond = payload["text"].encode()[len(known) - entry.at :]
                texts[payload["run"]] = known + beyond
            position = page.entries[-1].seq
        return position

    def age_run(self, ms: int, run: str = "r") -> None:
        """Its lease, or how long it is retained, began so much earlier."""
        fields = self.admin.hget(self.key("meta"), f"r:{run}").split()
        fields[2] = str(int(fields[2]) - ms)
        self.admin.hset(self.key("meta"), f"r:{run}", " ".join(fields))

    def lose_log(self) -> None:
        self.admin.delete(self.key("log"))


@dataclass
class Writer:
    """Appends as a run's writer."""

    stage: RunStage
    run: str
    writer: RunWriter
    producer: ProducerRef
    number: int = field(default=0)

    async def append(self, *items: Item, offset: int | None = None, expected: int | None = None, **more: Any) -> Any:
        """`offset`: how far the input is then. Its next numbers."""
        progress = None if offset is None else RunProgress(RunId(self.run), offset, b"s\n\0", GATEWAY, expected)
        values = {"number": self.number + 1, "due_ms": None, "progress": progress} | more
        outcome = await self.stage.append(*items, producer=self.producer, **values)
        if hasattr(outcome, "results"):
            self.number += len(items)
        return outcome


@asynccontextmanager
async def running(address: Address, admin: Any, settings: Settings | None = None) -> AsyncIterator[RunStage]:
    async with exchanging(address, admin, settings) as stage:
        yield RunStage(stage)
