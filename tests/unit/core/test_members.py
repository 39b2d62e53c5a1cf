"""The gateway's own record: announced with a lease, withdrawn for good, never the same id twice (C1, R15)."""

import asyncio

import pytest

from gateway.core.members import Members, new_gateway_id
from gateway.core.tasks import TaskOwner
from gateway.domain.wire.ids import GatewayId
from gateway.ports import GatewayRecord
from gateway.settings import MemberSettings
from tests.unit.core.fake_directory import FakeDirectory

pytestmark = pytest.mark.looptime

SETTINGS = MemberSettings()


class Directory(FakeDirectory):
    """Records that end with their lease."""

    def __init__(self) -> None:
        super().__init__()
        self.leases: dict[GatewayId, float] = {}
        self.announced: list[tuple[float, GatewayRecord]] = []

    async def announce(self, record: GatewayRecord, lease_seconds: float) -> bool:
        self._check()
        is_known = self.is_member(record.gateway)
        now = asyncio.get_running_loop().time()
        self.announced.append((now, record))
        self.leases[record.gateway] = now + lease_seconds
        return is_known

    async def withdraw(self, gateway: GatewayId) -> None:
        self._check()
        self.leases.pop(gateway, None)

    def is_member(self, gateway: GatewayId) -> bool:
        return self.leases.get(gateway, 0) > asyncio.get_running_loop().time()


class Scene:
    def __init__(self) -> None:
        self.directory = Directory()
        self.connections = 0
        self.forgotten = 0
        self.members = Members(
            self.directory.as_directory(),
            SETTINGS,
            self.describe,
            clock=lambda: asyncio.get_running_loop().time(),
            on_forgotten=self.forget,
        )
        self.owner = TaskOwner()

    def forget(self) -> None:
        self.forgotten += 1

    def describe(self) -> GatewayRecord:
        return GatewayRecord(GatewayId("gw"), "host:1", "0", "serving", self.connections, 0)


def test_an_id_has_the_name_and_is_new_for_each_process() -> None:
    first, second = new_gateway_id("pod-1"), new_gateway_id("pod-1")

    assert first != second
    name, _, unique = first.rpartition("-")
    assert (name, len(unique)) == ("pod-1", 16)
    assert new_gateway_id(None).rpartition("-")[0]


async def test_the_record_never_runs_out_while_the_gateway_lives_and_says_how_it_is() -> None:
    it = Scene()
    it.owner.forever("members", it.members.run())
    for number in range(200):
        it.connections = number
        await asyncio.sleep(0.5)
        assert it.directory.is_member(GatewayId("gw"))

    await it.owner.stop(1)

    at, record = it.directory.announced[-1]
    assert record.connections >= 190
    assert len(it.directory.announced) == pytest.approx(at / SETTINGS.renew_seconds, abs=2)


async def test_redis_away_is_survived_and_the_record_is_back_soon_after() -> None:
    it = Scene()
    it.owner.forever("members", it.members.run())
    it.directory.is_down = True
    await asyncio.sleep(60)
    it.directory.is_down = False

    await asyncio.sleep(SETTINGS.renew_seconds)

    assert it.directory.is_member(GatewayId("gw"))
    await it.owner.stop(1)


async def test_who_was_forgotten_looks_at_its_sessions_once() -> None:
    """FLUSHALL leaves no notice, but the next announcement is a first one again."""
    it = Scene()
    it.owner.forever("members", it.members.run())
    await asyncio.sleep(10)
    before = it.forgotten
    it.directory.leases.clear()

    await asyncio.sleep(10)

    assert (before, it.forgotten) == (0, 1)
    await it.owner.stop(1)


async def test_a_withdrawn_record_stays_away() -> None:
    it = Scene()
    it.owner.forever("members", it.members.run())
    await asyncio.sleep(1)

    await it.members.withdraw()
    await it.members.announce()
    await asyncio.sleep(10)

    assert not it.directory.leases
    await it.owner.stop(1)


async def test_redis_away_at_the_end_leaves_the_record_to_its_lease() -> None:
    it = Scene()
    await it.members.announce()
    it.directory.is_down = True

    await it.members.withdraw()
    await asyncio.sleep(SETTINGS.lease_seconds)

    assert not it.directory.is_member(GatewayId("gw"))
