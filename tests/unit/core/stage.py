"""A hub on a log in memory, and connections on links in memory."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gateway.core.connection import Connection
from gateway.core.hub import Hub
from gateway.core.tasks import TaskOwner
from gateway.domain.access.principal import EVERYBODY
from gateway.domain.measures import Measures
from gateway.domain.sessions.liveness import Liveness
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, SessionId, SessionRef, Tenant
from gateway.ports import Claimed, ClaimRequest
from gateway.settings import LimitSettings, LivenessSettings
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.read_log import ReadLog

GATEWAY = GatewayId("gw-1")


async def settle(turns: int = 60) -> None:
    """Let everything that can go on go on."""
    for _ in range(turns):
        await asyncio.sleep(0)


@dataclass
class Stage:
    log: ReadLog
    hub: Hub
    owner: TaskOwner
    measures: Measures
    now: list[float]
    links: dict[str, FakeLink] = field(default_factory=dict)

    def append(self, *texts: str, is_heard: bool = True) -> None:
        """Each in a batch of its own."""
        for text in texts:
            self.log.append(text, is_heard=is_heard)
            self.hub.flush()

    def make(self, name: str = "c1", client: str = "", *, is_acking: bool = False, replaces: str = "") -> Connection:
        connection = Connection(
            self.hub.shared,
            self.hub.local_session(self.log.ref),
            ident=ConnectionId(name),
            client=ClientId(client or name),
            principal=EVERYBODY,
            liveness=Liveness(20, self.now[0]),
            heartbeat_seconds=20,
            is_acking=is_acking,
            replaces=ConnectionId(replaces) if replaces else None,
        )
        self.hub.attach(connection)
        return connection

    async def claim(
        self, connection: Connection, *, cursor: Cursor | None = None, bare_seq: int | None = None, start: bool = False
    ) -> Claimed:
        outcome = await self.log.claim(
            ClaimRequest(
                session=self.log.ref,
                gateway=GATEWAY,
                connection=connection.id,
                client=connection.client,
                may_create=True,
                user=EVERYBODY.user,
                cursor=cursor,
                bare_seq=bare_seq,
                from_start=start,
                replaces=connection.replaces,
            )
        )
        assert isinstance(outcome, Claimed)
        connection.generation = outcome.generation
        return outcome

    def open(self, connection: Connection, claimed: Claimed, bare_seq: int | None = None) -> FakeLink:
        link = self.links[connection.id] = FakeLink()
        if connection.open(link):
            self.hub.opened(connection)
            self.hub.resume.begin(connection, claimed, bare_seq)
        return link

    async def connect(
        self,
        name: str = "c1",
        client: str = "",
        *,
        cursor: Cursor | None = None,
        bare_seq: int | None = None,
        start: bool = False,
        is_acking: bool = False,
        replaces: str = "",
    ) -> tuple[Connection, FakeLink]:
        """Claimed, welcomed, and as far as it gets without a new event."""
        connection = self.make(name, client, is_acking=is_acking, replaces=replaces)
        claimed = await self.claim(connection, cursor=cursor, bare_seq=bare_seq, start=start)
        link = self.open(connection, claimed, bare_seq)
        await settle()
        return connection, link


@asynccontextmanager
async def stage(session: str = "chat-1", *, overtaking_seconds: float = 0.0, **limits: int) -> AsyncIterator[Stage]:
    """Every task must have ended at the end of the block."""
    log = ReadLog(SessionRef(Tenant("default"), SessionId(session)))
    owner, measures, now = TaskOwner(), Measures(), [1000.0]
    hub = Hub(
        log.store,
        LimitSettings(**limits),
        measures,
        owner,
        lambda: now[0],
        gateway=GATEWAY,
        liveness=LivenessSettings(),
        rng=random.Random(1),
        runs=log.runs,
        wall_clock=lambda: 1_710_000_000.5,
        overtaking_seconds=overtaking_seconds,
    )
    log.bus = hub.on_message
    made = Stage(log, hub, owner, measures, now)
    try:
        yield made
        await settle()
        assert not len(owner), "a task is left"
    finally:
        await owner.stop(1)


async def fill(it: Stage, kib: int) -> None:
    """So many messages of a KiB each, and what they bring about."""
    for _ in range(kib):
        it.append("x" * 1024)
    await settle()


__all__ = ["GATEWAY", "Stage", "fill", "settle", "stage"]
