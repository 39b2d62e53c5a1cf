"""Another incarnation of the server: every script sees it, what was lost is reported exactly (G10, design.md 4)."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.sessions.log_state import Fork
from gateway.domain.wire.ids import ConnectionId
from gateway.ports import HeadInfo, Origin, Renewal, StoreUnavailable
from tests.integration.resp.servers import Server
from tests.integration.store.stage import REDIS, Stage, answered, data, delta, run_end, staged

STALE = "0" * 40


def incarnation(server: Server) -> str:
    return str(server.admin.info("replication")["master_replid"])


def bases(forks: tuple[Fork, ...]) -> list[int]:
    return [fork.base for fork in forks]


async def answering(stage: Stage) -> None:
    """Until the store's connection is there again."""
    async with asyncio.timeout(10):
        while True:
            try:
                await stage.client.call("PING")
                return
            except StoreUnavailable:
                await asyncio.sleep(0.01)


class TestStaleName:
    """The caller names another server than meta, as it does until its connection has asked again."""

    async def test_nothing_is_forked_when_meta_holds_the_true_one(self, stage: Stage) -> None:
        before = await stage.put(data())
        true = stage.client.incarnation
        stage.client.incarnation = STALE

        after = await stage.put(data())
        assert stage.client.incarnation == true, "the caller was told"
        stage.client.incarnation = STALE
        claimed = await stage.claimed(cursor=f"{before.line.decode()}.1")
        assert stage.client.incarnation == true
        stage.client.incarnation = STALE
        renewed = await stage.renew(stage.renew_client(claimed))

        assert after.line == before.line == claimed.log.line
        assert bases(claimed.log.forks) == [0]
        assert [entry.seq for entry in claimed.page.entries] == [2]  # type: ignore[union-attr]
        assert renewed[0].outcome is Renewal.OK

    async def test_heads_and_pages_are_not_stale_then(self, stage: Stage) -> None:
        line = (await stage.put(data())).line
        stage.client.incarnation = STALE

        assert await stage.store.heads([stage.ref]) == [HeadInfo(line, 1, False)]
        assert await stage.seqs() == [1]


class TestOtherServer:
    """Meta names another server than the one that answers."""

    @pytest.fixture
    async def moved(self, stage: Stage) -> Stage:
        await stage.put(delta("open", "abcde"), delta("ended", "ab"), run_end("ended"), data())
        stage.admin.hset(stage.key("meta"), "inc", "f" * 40)
        return stage

    async def test_an_append_opens_a_fork_that_names_the_runs(self, moved: Stage) -> None:
        appended = await moved.put(delta("open", "fg"))

        page = await moved.store.page(moved.ref, 0, 1 << 20)
        assert page is not None
        assert appended.line == page.log.line
        first, second = page.log.forks
        assert first == Fork(first.id, 0)
        assert second == Fork(second.id, 4, {"open": 5, "ended": 2})
        assert first.id != second.id
        assert page.entries[-1].at == 5, "the run goes on"

    async def test_a_claim_opens_a_fork(self, moved: Stage) -> None:
        claimed = await moved.claimed(bare_seq=3)

        assert bases(claimed.log.forks) == [0, 4]
        assert claimed.cursor == claimed.log.cursor(3)
        assert (await moved.put(data())).line == claimed.log.line

    async def test_heads_only_report_and_a_page_opens_the_fork(self, moved: Stage) -> None:
        [head] = answered(await moved.store.heads([moved.ref]))
        assert head.is_stale
        assert answered(await moved.store.heads([moved.ref]))[0].line == head.line

        page = await moved.store.page(moved.ref, 2, 1 << 20)

        assert page is not None
        assert bases(page.log.forks) == [0, 4]
        assert await moved.store.heads([moved.ref]) == [HeadInfo(page.log.line, 4, False)]

    async def test_a_renewal_opens_a_fork_and_is_lost(self, stage: Stage) -> None:
        claimed = await stage.claimed()
        await stage.put(data())
        stage.admin.hset(stage.key("meta"), "inc", "f" * 40)

        results = await stage.renew(stage.renew_client(claimed, acked=1))

        assert [result.outcome for result in results] == [Renewal.LOST]
        again = await stage.claimed(reclaims=claimed.generation, cursor=str(claimed.log.cursor(1)))
        assert bases(again.log.forks) == [0, 1]
        assert (again.origin, again.page) == (Origin.CURSOR, None)
        await stage.release(stage.renew_client(again))
        assert (await stage.claimed("c2")).cursor == claimed.log.cursor(1), "what was acknowledged names its own line"

    async def test_the_last_8_forks_are_kept(self, stage: Stage) -> None:
        lines = set()
        for _ in range(10):
            lines.add((await stage.put(data())).line)
            stage.admin.hset(stage.key("meta"), "inc", "f" * 40)

        page = await stage.store.page(stage.ref, 0, 1 << 20)

        assert page is not None
        assert bases(page.log.forks) == [3, 4, 5, 6, 7, 8, 9, 10]
        assert len(lines | {page.log.line}) == 11

    async def test_producers_go_on_in_the_new_fork(self, moved: Stage) -> None:
        repeated = await moved.put(data(), data(), number=4)

        assert [(result.seq, result.duplicate) for result in repeated.results] == [(4, True), (5, False)]


async def test_verifying_every_call_needs_no_name(shared_server: Server) -> None:
    """`verify_server: call`: behind a proxy the connection does not know whom it talks to."""
    settings = REDIS.model_copy(update={"verify_server": "call"})
    async with staged(shared_server.address, shared_server.admin, redis_settings=settings) as stage:
        before = await stage.put(data())
        stage.admin.hset(stage.key("meta"), "inc", "f" * 40)
        stage.client.incarnation = "f" * 40

        assert answered(await stage.store.heads([stage.ref]))[0].is_stale
        after = await stage.put(data())

        assert after.line != before.line
        assert after.head == 2


async def test_a_restart_with_persistence_loses_nothing_and_is_a_fork(server: Server) -> None:
    async with staged(server.address, server.admin) as stage:
        before = await stage.fill(20)
        server.restart()
        await answering(stage)

        claimed = await stage.claimed(cursor=f"{before.line.decode()}.20")

        assert bases(claimed.log.forks) == [0, 20]
        assert (claimed.log.head, claimed.log.lost) == (20, 0)
        assert (await stage.put(data(), number=20)).results[0].seq == 20, "the producer's numbers are there too"


async def test_a_restart_without_data_is_another_epoch(tmp_path: Path) -> None:
    server = Server(tmp_path, "--appendonly", "no")
    server.start()
    try:
        async with staged(server.address, server.admin) as stage:
            before = await stage.fill(20)
            server.restart()
            await answering(stage)

            claimed = await stage.claimed(cursor=f"{before.line.decode()}.20")

            assert claimed.origin is Origin.CREATED
            assert claimed.log.epoch.encode() != before.line.split(b".")[0]
    finally:
        server.end()


class Pair:
    """A primary and its replica."""

    def __init__(self, directory: Path) -> None:
        (directory / "one").mkdir()
        (directory / "two").mkdir()
        self.one = Server(directory / "one", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
        self.two = Server(directory / "two", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
        self.one.start()
        self.two.start()

    def follow(self, follower: Server, leader: Server) -> None:
        follower.admin.replicaof("127.0.0.1", leader.port)
        deadline = time.monotonic() + 20
        while not self._is_equal(follower, leader):
            assert time.monotonic() < deadline, "the replica does not catch up"
            time.sleep(0.01)

    def promote(self, server: Server) -> None:
        server.admin.replicaof("NO", "ONE")

    def _is_equal(self, follower: Server, leader: Server) -> bool:
        info: Any = follower.admin.info("replication")
        offset = leader.admin.info("replication")["master_repl_offset"]
        return info.get("master_link_status") == "up" and info["slave_repl_offset"] == offset


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.one.end()
    pair.two.end()


@pytest.fixture
async def both(pair: Pair) -> AsyncIterator[tuple[Stage, Stage]]:
    """The same session on either server."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(staged(pair.one.address, pair.one.admin))
        second = await stack.enter_async_context(staged(pair.two.address, pair.two.admin))
        second.ref, second.numbers = first.ref, first.numbers
        yield first, second


async def test_a_promoted_replica_that_lost_nothing(pair: Pair, both: tuple[Stage, Stage]) -> None:
    first, second = both
    before = await first.fill(10)
    pair.follow(pair.two, pair.one)
    pair.promote(pair.two)
    await answering(second)

    claimed = await second.claimed(cursor=f"{before.line.decode()}.10")

    assert claimed.log.head == 10
    assert bases(claimed.log.forks) == [0, 10], "a cursor up to 10 of the first fork is valid"
    assert (await second.put(data())).results[0].seq == 11


async def test_a_promoted_replica_that_lacks_the_last_5_writes(pair: Pair, both: tuple[Stage, Stage]) -> None:
    first, second = both
    await first.fill(10)
    pair.follow(pair.two, pair.one)
    pair.promote(pair.two)
    lost = await first.fill(5)
    await answering(second)

    appended = await second.append(data(), number=16)
    claimed = await second.claimed(cursor=f"{lost.line.decode()}.15")

    assert appended.number == 11, "the producer is told what is missing"  # type: ignore[union-attr]
    assert claimed.log.head == 10
    assert bases(claimed.log.forks) == [0, 10], "11 to 15 of the first fork are a gap"


async def test_promoted_back_and_forth(pair: Pair, both: tuple[Stage, Stage]) -> None:
    """Each promotion is another incarnation, also of a server that was primary before."""
    first, second = both
    names = {incarnation(pair.one)}
    await first.fill(3)
    pair.follow(pair.two, pair.one)
    pair.promote(pair.two)
    names.add(incarnation(pair.two))
    await answering(second)
    await second.put(data())
    pair.follow(pair.one, pair.two)
    pair.promote(pair.one)
    names.add(incarnation(pair.one))
    await _knows(first, incarnation(pair.one))

    appended = await first.put(data())

    page = await first.store.page(first.ref, 0, 1 << 20)
    assert page is not None
    assert len(names) == 3
    assert appended.head == 5
    assert bases(page.log.forks) == [0, 3, 4]
    assert len({fork.id for fork in page.log.forks}) == 3


async def _knows(stage: Stage, name: str) -> None:
    async with asyncio.timeout(10):
        while not stage.client.is_up or stage.client.incarnation != name:
            await asyncio.sleep(0.01)


async def test_a_replica_refuses_whole(pair: Pair, both: tuple[Stage, Stage]) -> None:
    first, second = both
    await first.fill(2)
    claimed = await first.claimed()
    pair.follow(pair.two, pair.one)

    with pytest.raises(StoreUnavailable) as refusal:
        await second.append(data())
    assert not refusal.value.outcome_unknown
    with pytest.raises(StoreUnavailable):
        await second.renew(second.renew_client(claimed))
    with pytest.raises(StoreUnavailable):
        await second.store.settle(second.ref, "phone", ConnectionId("c1"), claimed.generation)  # type: ignore[arg-type]
    assert pair.two.admin.xlen(first.key("log")) == 2
