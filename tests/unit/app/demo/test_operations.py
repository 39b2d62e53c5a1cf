"""What an operator does to the demo's cluster: one thing at a time, each gateway once, within bounds."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.app.demo.gateways import GatewayProcess, Gateways
from gateway.app.demo.operations import LEAST_GATEWAYS, MOST_GATEWAYS, Operations
from gateway.domain.operator_error import OperatorError


class Cluster:
    """Its gateways drain, and are replaced, in no time."""

    def __init__(self, count: int) -> None:
        self.members = [self._member(number) for number in range(1, count + 1)]
        self.clients = {"reader-1": "gateway-1", "reader-2": "gateway-2"}
        self.done: list[str] = []
        self.cannot_start = False
        self.operations = Operations(
            cast("Gateways", self), self.terminate, lambda: self.clients, self.watch, self.done.append
        )

    def _member(self, number: int) -> GatewayProcess:
        process: Any = SimpleNamespace(pid=number, returncode=None)
        return GatewayProcess(f"gateway-{number}", number, state="up", process=process)

    def terminate(self, member: GatewayProcess) -> bool:
        self.done.append(f"SIGTERM {member.name}")
        cast("Any", member.process).pid += 100
        for client, place in self.clients.items():
            if place == member.name:
                self.clients[client] = "gateway-9"
        if member is self.members[-1] and self.operations.running is None:
            self.members.pop()
        return True

    async def add(self) -> GatewayProcess:
        if self.cannot_start:
            raise OperatorError("a gateway did not start; the last lines")
        self.members.append(self._member(len(self.members) + 1))
        return self.members[-1]

    def watch(self, member: GatewayProcess) -> None:
        self.done.append(f"watch {member.name}")


async def test_a_roll_replaces_each_gateway_once_and_says_who_moved() -> None:
    cluster = Cluster(3)

    assert await cluster.operations.roll()

    assert [line for line in cluster.done if line.startswith("SIGTERM")] == [f"SIGTERM gateway-{n}" for n in (1, 2, 3)]
    assert any(line.endswith("reader-1 to gateway-9") for line in cluster.done)
    assert cluster.operations.done == ["rolled 3 gateways: 2 moves of clients"]
    assert cluster.operations.running is None


async def test_a_gateway_that_is_dead_already_is_not_waited_for() -> None:
    cluster = Cluster(2)
    cluster.members[0].process = None

    await cluster.operations.roll()

    assert "SIGTERM gateway-1" not in cluster.done
    assert "SIGTERM gateway-2" in cluster.done


@pytest.mark.parametrize(
    ("count", "grows", "shrinks"),
    [
        (LEAST_GATEWAYS, True, False),
        (LEAST_GATEWAYS + 1, True, True),
        (MOST_GATEWAYS - 1, True, True),
        (MOST_GATEWAYS, False, True),
    ],
)
async def test_bounds_of_the_cluster(count: int, grows: bool, shrinks: bool) -> None:
    assert await Cluster(count).operations.scale_out() is grows
    assert await Cluster(count).operations.scale_in() is shrinks


async def test_a_new_gateway_is_watched_and_the_newest_one_leaves_for_good() -> None:
    cluster = Cluster(3)

    await cluster.operations.scale_out()
    newest = cluster.members[-1]
    await cluster.operations.scale_in()

    assert "watch gateway-4" in cluster.done
    assert newest.is_leaving
    assert newest not in cluster.members


async def test_a_gateway_that_does_not_start_leaves_all_as_it_was() -> None:
    cluster = Cluster(3)
    cluster.cannot_start = True

    assert not await cluster.operations.scale_out()

    assert cluster.done == ["a gateway did not start; the last lines"]
    assert cluster.operations.can_grow


async def test_one_operation_at_a_time() -> None:
    cluster = Cluster(3)
    cluster.operations.running = "roll 1 of 3"

    outcomes = [
        await cluster.operations.roll(),
        await cluster.operations.scale_out(),
        await cluster.operations.scale_in(),
    ]

    assert (outcomes, cluster.done) == ([False] * 3, [])
