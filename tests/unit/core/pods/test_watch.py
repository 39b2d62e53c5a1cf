"""Lists once, watches from there, lists again only when it must; goes on without a server; tells of the own end."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from gateway.core.pods.watch import MOST_WAIT_SECONDS, SOUND_SECONDS, STALE_SECONDS, PodWatch
from gateway.domain.measures import Measures
from gateway.domain.pods.endpoints import Standing
from gateway.domain.wire.ids import GatewayId
from gateway.ports.pods import AwayReason, PodsAway
from tests.unit.core.pods.fake_pods import FORBIDDEN, FakePods
from tests.unit.core.stage import settle

A, B = GatewayId("a-0123456789abcdef"), GatewayId("b-0123456789abcdef")


@dataclass
class Scene:
    pods: FakePods
    uid: str = ""
    now: list[float] = field(default_factory=lambda: [0.0])
    measures: Measures = field(default_factory=Measures)
    ended: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watch = PodWatch(
            self.pods.as_pods(),
            self.measures,
            pod="a",
            uid=self.uid,
            clock=lambda: self.now[0],
            rng=random.Random(7),
            on_terminating=lambda: self.ended.append("a"),
        )

    async def steps(self, count: int) -> list[float]:
        return [await self.watch.step() for _ in range(count)]

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """While a watch lasts."""
        step = asyncio.get_running_loop().create_task(self.watch.step())
        await settle()
        yield
        step.cancel()
        await asyncio.wait([step])


async def test_a_watch_that_ended_goes_on_from_where_it_was_without_a_list() -> None:
    pods = FakePods()
    pods.ends_after = 1
    scene = Scene(pods)
    pods.put("a", Standing.READY)
    pods.bookmark()
    await scene.steps(1)
    pods.put("b", Standing.READY)
    await scene.steps(1)
    pods.bookmark()
    await scene.steps(1)

    assert ["list", "watch from 102", "watch from 102", "watch from 103"] == pods.asked


async def test_what_expired_is_answered_by_a_fresh_list() -> None:
    """Also where it expires in the middle of a watch; what the list does not name is gone."""
    pods = FakePods()
    scene = Scene(pods)
    pods.put("a", Standing.READY)
    pods.put("b", Standing.READY)
    async with scene.watching():
        del pods.slices["slice-b"]
        pods.version += 5
        pods.forget()
        await settle()
    async with scene.watching():
        counts = scene.watch.counts()

    assert ["list", "watch from 102", "list", "watch from 107"] == pods.asked
    assert {"ready": 1} == counts
    assert 1 == scene.measures.kubernetes_errors["expired"]


async def test_an_api_server_that_expires_everything_is_not_asked_without_a_pause() -> None:
    pods = FakePods()
    pods.forgotten = 10**6
    scene = Scene(pods)

    waits = await scene.steps(8)

    assert 16 == len(pods.asked)
    assert 0.5 <= waits[0] <= 1.0
    assert MOST_WAIT_SECONDS / 2 <= waits[-1] <= MOST_WAIT_SECONDS


async def test_a_watch_that_always_ends_at_once_is_made_less_and_less_often() -> None:
    pods = FakePods()
    pods.ends_after = 0
    waits = await Scene(pods).steps(4)

    assert 4.0 <= waits[-1] <= 8.0


async def test_a_quiet_watch_of_a_good_length_is_made_again_soon_and_failures_before_it_are_forgotten() -> None:
    pods = FakePods()
    scene = Scene(pods)
    pods.ends_after = 0
    await scene.steps(6)
    pods.ends_after = None
    watching = asyncio.get_running_loop().create_task(scene.watch.step())
    await settle()
    scene.now[0] += SOUND_SECONDS
    pods.ends_after = 0
    pods.news.set()
    after_it = await watching
    after_a_failure = (await scene.steps(1))[0]

    assert after_it <= 1.0
    assert after_a_failure <= 1.0


async def test_who_is_not_reachable_is_left_out_while_it_is_watched() -> None:
    pods = FakePods()
    scene = Scene(pods)
    pods.put("a", Standing.READY)
    pods.put("b", Standing.READY)
    async with scene.watching():
        before = list(scene.watch.among([A, B]))
        pods.put("b", Standing.NOT_READY)
        await settle()
        after = list(scene.watch.among([A, B]))

    assert ([A, B], [A]) == (before, after)


@pytest.mark.parametrize(("seconds", "expected"), [(STALE_SECONDS, [A]), (STALE_SECONDS + 0.1, [A, B])])
async def test_what_was_known_counts_for_a_while_only(seconds: float, expected: list[GatewayId]) -> None:
    pods = FakePods()
    scene = Scene(pods)
    pods.put("a", Standing.READY)
    pods.put("b", Standing.NOT_READY)
    async with scene.watching():
        pass
    scene.now[0] += seconds

    assert expected == list(scene.watch.among([A, B]))


@pytest.mark.parametrize("what", ["list", "watch"])
async def test_a_lasting_refusal_is_warned_of_once_counted_each_time_and_asked_less_often(what: str) -> None:
    pods = FakePods()
    pods.away[what] = FORBIDDEN
    scene = Scene(pods)
    with capture_logs() as logs:
        waits = await scene.steps(9)

    assert ["kubernetes_away"] == [line["event"] for line in logs]
    assert 9 == scene.measures.kubernetes_errors["forbidden"]
    assert scene.watch.is_away
    assert [A, B] == list(scene.watch.among([A, B]))
    assert MOST_WAIT_SECONDS / 2 <= waits[-1] <= MOST_WAIT_SECONDS


async def test_what_works_again_is_said_and_the_next_outage_is_warned_of_again() -> None:
    pods = FakePods()
    scene = Scene(pods)
    pods.ends_after = 0
    with capture_logs() as logs:
        for away in (True, False, True):
            pods.away = {"list": FORBIDDEN, "watch": FORBIDDEN} if away else {}
            await scene.steps(2)

    assert ["kubernetes_away", "kubernetes_back", "kubernetes_away"] == [line["event"] for line in logs]


async def test_a_server_that_names_a_time_is_left_alone_for_it() -> None:
    pods = FakePods()
    pods.away["list"] = PodsAway(AwayReason.BUSY, "429", 17.0)

    assert [17.0] == await Scene(pods).steps(1)


# ---- the own pod -----------------------------------------------------------------------------------------------


async def test_the_own_pods_end_is_told_once() -> None:
    pods = FakePods()
    scene = Scene(pods)
    pods.put("a", Standing.READY)
    async with scene.watching():
        assert [] == scene.ended
        pods.put("a", Standing.TERMINATING)
        pods.put("a", Standing.TERMINATING)
        await settle()

    assert ["a"] == scene.ended


async def test_another_pods_end_is_not_ours() -> None:
    pods = FakePods()
    scene = Scene(pods)
    pods.put("a", Standing.READY)
    pods.put("b", Standing.TERMINATING)
    async with scene.watching():
        assert [] == scene.ended


async def test_an_endpoint_that_is_gone_or_not_ready_is_no_end() -> None:
    pods = FakePods()
    scene = Scene(pods)
    pods.put("a", Standing.READY)
    async with scene.watching():
        pods.put("a", Standing.NOT_READY)
        pods.remove("a")
        await settle()

    assert [] == scene.ended


async def test_an_end_that_happened_while_nobody_watched_is_in_the_list() -> None:
    pods = FakePods()
    scene = Scene(pods, uid="u1")
    pods.put("a", Standing.TERMINATING, uid="u1")
    async with scene.watching():
        pass

    assert ["a"] == scene.ended


@pytest.mark.parametrize("uid", ["", "new"])
async def test_the_end_of_the_pod_before_that_had_our_name_is_not_ours(uid: str) -> None:
    pods = FakePods()
    scene = Scene(pods, uid=uid)
    pods.put("a", Standing.TERMINATING, uid="old")
    async with scene.watching():
        pods.put("a", Standing.READY, uid="new")
        await settle()

    assert [] == scene.ended
