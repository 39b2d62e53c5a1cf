"""Who is preferred: every gateway says the same, drained and dead ones are not, a lost list keeps the last."""

from gateway.core.peers import Peers
from gateway.domain.wire.ids import GatewayId
from gateway.ports import GatewayRecord
from tests.unit.core.fake_directory import FakeDirectory

THINGS = [f"due:{shard}" for shard in range(16)]


def record(name: str, state: str = "serving") -> GatewayRecord:
    return GatewayRecord(GatewayId(name), "", "1", state, 0, 0)


async def peers(directory: FakeDirectory, *names: str) -> list[Peers]:
    made = [Peers(directory.as_directory(), GatewayId(name)) for name in names]
    for one in made:
        await one.read()
    return made


async def test_each_thing_is_preferred_by_exactly_one_gateway() -> None:
    directory = FakeDirectory()
    directory.records = [record("a"), record("b"), record("c")]

    everyone = await peers(directory, "a", "b", "c")

    assert all(sum(one.is_preferred(thing) for one in everyone) == 1 for thing in THINGS)


async def test_a_draining_gateway_hands_over() -> None:
    directory = FakeDirectory()
    directory.records = [record("a", "draining"), record("b")]

    draining, serving = await peers(directory, "a", "b")

    assert not any(map(draining.is_preferred, THINGS))
    assert all(map(serving.is_preferred, THINGS))


async def test_what_was_known_counts_while_redis_is_away() -> None:
    directory = FakeDirectory()
    directory.records = [record("a")]
    (alone,) = await peers(directory, "a")
    directory.is_down = True
    await alone.read()

    assert alone.is_preferred("due:1")


async def test_a_gateway_that_knows_nobody_is_preferred_for_nothing() -> None:
    directory = FakeDirectory()
    directory.is_down = True

    (alone,) = await peers(directory, "a")

    assert not alone.is_preferred("due:1")
