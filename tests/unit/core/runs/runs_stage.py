"""Runs of two gateways on one store in memory, in virtual time."""

import asyncio
import random
from typing import Any

from gateway.core.attempts import Attempts
from gateway.core.runs.open_ingest import OpenIngest
from gateway.core.runs.parts import RunParts
from gateway.core.runs.runs import Runs
from gateway.core.runs.ticker import Ticker
from gateway.core.runs.tokens import Tokens
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.streams.dialects import DialectName
from gateway.domain.streams.run_options import AttachAt, RunOptions, StreamRequest, TokensRequest
from gateway.domain.streams.segment import SegmentOptions
from gateway.domain.wire.ids import GatewayId, RunId, SessionId, SessionRef, Tenant
from gateway.settings import LimitSettings, RedisSettings, RunSettings
from tests.unit.core.runs.fake_runs import FakeRuns

REF = SessionRef(Tenant("t"), SessionId("s"))
RUN = RunId("r7")
DEADLINE_SECONDS = 1.0


class Notes:
    def __init__(self) -> None:
        self.heads: list[int] = []

    def note(self, _ref: SessionRef, appended: Any) -> None:
        self.heads.append(appended.head)


def make_parts(store: FakeRuns, gateway: str = "gw-1", *, hooks: Any = None, **settings: Any) -> RunParts:
    loop = asyncio.get_running_loop()
    log, runs, deadlines = store.as_store()
    redis, rng = RedisSettings(deadline_seconds=DEADLINE_SECONDS, call_timeout_seconds=0.5), random.Random(1)
    return RunParts(
        log=log,
        runs=runs,
        deadlines=deadlines,
        notes=Notes(),
        attempts=Attempts(redis, loop.time, rng),
        measures=Measures(),
        owner=TaskOwner(),
        gateway=GatewayId(gateway),
        redis=redis,
        limits=LimitSettings(),
        settings=RunSettings(**settings),
        clock=loop.time,
        rng=rng,
        hooks=hooks,
        ticker=Ticker(loop.time),
    )


def make_runs(store: FakeRuns, gateway: str = "gw-1", **settings: Any) -> Runs:
    return Runs(make_parts(store, gateway, **settings))


def make_tokens(store: FakeRuns, gateway: str = "gw-1", **settings: Any) -> Tokens:
    parts = make_parts(store, gateway, **settings)
    return Tokens(parts, Runs(parts), random.Random(gateway))


def stream(
    dialect: DialectName = DialectName.NDJSON,
    segment: SegmentOptions | None = None,
    *,
    epoch: int | None = None,
    offset: int | None = None,
    **fields: Any,
) -> StreamRequest:
    attach = None if epoch is None else AttachAt(epoch, offset)
    return StreamRequest(REF, RUN, RunOptions(dialect, segment or SegmentOptions()), attach, **fields)


def tokens(text: str, segment: SegmentOptions | None = None, **fields: Any) -> TokensRequest:
    return TokensRequest(REF, RUN, RunOptions(None, segment or SegmentOptions()), text, **fields)


class Producer:
    """One request, as the HTTP handler drives it."""

    def __init__(self, runs: Runs, request: StreamRequest) -> None:
        self.runs = runs
        self.request = request
        self.is_told = False

    async def __aenter__(self) -> OpenIngest:
        self.ingest = await self.runs.begin(self.request)
        self._holding = self.runs.holding(self.ingest, self.request)
        self._holding.__enter__()
        self.ingest.on_stop(self._tell)
        return self.ingest

    async def __aexit__(self, *_: object) -> None:
        self._holding.__exit__(None, None, None)

    def _tell(self) -> None:
        self.is_told = True
