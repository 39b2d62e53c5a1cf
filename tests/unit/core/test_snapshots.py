"""Below the retained log a client gets each run's text, whatever happens meanwhile (G4, design.md 4)."""

import asyncio
import hashlib
import json
import random
from typing import Any

import pytest

from gateway.domain.sessions.states import State
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.ids import ClientId, RunId
from gateway.ports import Cut, Seen, Track
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import Stage, settle, stage

KIB = 1024


def cursor(seq: int, fork: str = "fork0") -> Cursor:
    return Cursor("epoch0", fork, seq)


class Reader:
    """A client: keeps its position and each run's text, from frames alone."""

    def __init__(self) -> None:
        self.texts: dict[str, bytes] = {}
        self.cursor = cursor(0)
        self.ends: dict[str, dict[str, Any]] = {}
        self.taken = 0

    def take(self, link: FakeLink) -> None:
        for frame in link.frames[self.taken :]:
            payload = frame["payload"]
            if frame["type"] == "control":
                self._control(payload)
                continue
            assert frame.get("first_seq", frame["seq"]) == self.cursor.seq + 1
            self.cursor = Cursor(self.cursor.epoch, self.cursor.fork, frame["seq"])
            if payload["kind"] == "delta":
                self._add(payload["run"], payload["at"], payload["text"])
            elif payload["kind"] == "run_end":
                self.ends[payload["run"]] = payload
        self.taken = len(link.frames)

    def _control(self, payload: dict[str, Any]) -> None:
        if payload["kind"] == "snapshot" and "run" in payload:
            if payload["at"] == 0 and not payload.get("cut"):
                self.texts[payload["run"]] = b""
            self._add(payload["run"], payload["at"], payload["text"])
            if "end" in payload:
                self.ends[payload["run"]] = payload["end"]
        if payload["kind"] == "gap" and payload["reason"] == "epoch_changed":
            self.texts = {run: self.texts.get(run, b"")[:size] for run, size in payload["runs"].items()}
        if payload["kind"] in ("welcome", "gap", "forked", "snapshot") and "cursor" in payload:
            self.cursor = Cursor.parse(payload["cursor"])

    def _add(self, run: str, at: int, text: str) -> None:
        known = self.texts.setdefault(run, b"")
        assert at <= len(known), f"{run}: {at} after {len(known)}"
        data = text.encode()
        self.texts[run] = known + data[len(known) - at :] if len(known) < at + len(data) else known


async def evicted(it: Stage, texts: int = 40, lost: int = 30, void: int = 0) -> None:
    it.log.keeps_texts = True
    it.append(*(f"wörd {n} " for n in range(texts)))
    it.log.trim(lost, void=void)


async def test_a_cursor_below_the_log_gets_the_text_and_no_gap() -> None:
    async with stage() as it:
        await evicted(it)
        connection, link = await it.connect(cursor=cursor(3))

        reader = Reader()
        reader.take(link)
        assert link.kinds() == ["welcome", "snapshot", "31-40"]
        assert link.control("welcome")[0]["resumed"] == "snapshot"
        assert link.control("snapshot")[0]["cursor"] == "epoch0.fork0.30"
        assert link.control("snapshot")[0]["start"] == {"kind": "run_start", "run": "r1"}
        assert link.control("snapshot")[0]["open"] is True
        assert reader.texts["r1"] == it.log.texts["r1", Track.TEXT]
        assert connection.state is State.LIVE


@pytest.mark.parametrize(
    ("seq", "kinds", "resumed"),
    [
        (30, ["welcome", "31-40"], "full"),
        (29, ["welcome", "snapshot", "31-40"], "snapshot"),
        (10, ["welcome", "snapshot", "31-40"], "snapshot"),
        (9, ["welcome", "gap", "snapshot", "31-40"], "gap"),
        (0, ["welcome", "gap", "snapshot", "31-40"], "gap"),
    ],
)
async def test_at_the_edges_of_what_can_be_rebuilt(seq: int, kinds: list[str], resumed: str) -> None:
    async with stage() as it:
        await evicted(it, void=10)
        _, link = await it.connect(cursor=cursor(seq))

        assert link.kinds() == kinds
        assert link.control("welcome")[0]["resumed"] == resumed
        assert [(gap["first"], gap["last"]) for gap in link.control("gap")] == ([(seq + 1, 10)] if seq < 10 else [])


async def test_from_the_start_it_is_fresh_and_whole() -> None:
    async with stage() as it:
        await evicted(it)
        _, link = await it.connect(start=True)

        reader = Reader()
        reader.take(link)
        assert link.control("welcome")[0]["resumed"] == "fresh"
        assert reader.texts["r1"] == it.log.texts["r1", Track.TEXT]


async def test_long_texts_come_in_frames_of_bounded_size_and_a_bounded_number_of_reads() -> None:
    async with stage(merged_frame_bytes=2_048, replay_page_bytes=8_192) as it:
        it.log.keeps_texts = True
        it.append(*('"\\ \n ünï 👍 ' * 90 for _ in range(30)))
        it.log.trim(29, void=0)
        _, link = await it.connect(cursor=cursor(0))
        await settle(200)

        reader = Reader()
        reader.take(link)
        sizes = [len(json.dumps(frame, ensure_ascii=False).encode()) for frame in link.frames]
        assert reader.texts["r1"] == it.log.texts["r1", Track.TEXT]
        assert max(sizes[1:-1]) <= 2_400  # this test's JSON has more spaces
        assert [part["last"] for part in link.control("snapshot")].count(True) == 1
        assert len(it.log.text_reads) <= len(it.log.texts["r1", Track.TEXT]) // 8_192 + 2


async def test_kept_items_split_the_gap_and_follow_the_texts_above_it() -> None:
    async with stage() as it:
        await evicted(it, void=10)
        for seq in (5, 20):
            it.log.kept[seq] = (
                f'{{"type":"text","seq":{seq},"timestamp":1,"session_id":"chat-1","payload":{{"kind":"data"}}}}'.encode()
            )
        _, link = await it.connect(cursor=cursor(2))

        reader = Reader()
        reader.take(link)
        assert link.kinds() == ["welcome", "gap", "5-5", "gap", "snapshot", "20-20", "snapshot", "31-40"]
        assert [(gap["first"], gap["last"]) for gap in link.control("gap")] == [(3, 4), (6, 10)]
        assert [part["cursor"] for part in link.control("snapshot")] == ["epoch0.fork0.19", "epoch0.fork0.30"]


async def test_who_begins_live_gets_kept_pushes_and_nothing_else_of_the_past() -> None:
    async with stage() as it:
        await evicted(it, void=10)
        it.log.kept_from = 20
        for seq in (20, 35):
            it.log.kept[seq] = (
                f'{{"type":"text","seq":{seq},"timestamp":1,"session_id":"chat-1","payload":{{"kind":"data"}}}}'.encode()
            )
        connection, link = await it.connect()
        it.append("live")

        assert link.kinds() == ["welcome", "20-20", "snapshot", "35-35", "snapshot", "41-41"]
        assert link.control("welcome")[0]["cursor"] == "epoch0.fork0.19"
        assert connection.state is State.LIVE


async def test_a_text_past_its_cap_is_partial() -> None:
    async with stage() as it:
        await evicted(it)
        text = it.log.texts["r1", Track.TEXT]
        it.log.texts["r1", Track.TEXT] = text[:8]
        _, link = await it.connect(cursor=cursor(0))

        part = link.control("snapshot")[0]
        assert (part["partial"], part["text"]) == (True, text[:8].decode())
        assert part["bytes"] == it.log.entries[31].at


async def test_a_text_that_is_gone_is_read_twice_and_then_partial() -> None:
    async with stage() as it:
        await evicted(it)
        whole = dict(it.log.texts)

        def vanish() -> None:
            it.log.texts["r1", Track.TEXT] = b""

        async def gone(*_: Any) -> Any:
            vanish()
            found = await type(it.log).run_text(it.log, *_)
            it.log.texts = dict(whole)
            return found

        it.log.run_text = gone  # type: ignore[method-assign]
        _, link = await it.connect(cursor=cursor(0))

        assert link.control("snapshot")[0]["partial"] is True
        assert len(it.log.text_reads) == 2


async def test_the_end_of_a_run_that_left_the_log_comes_with_its_text() -> None:
    async with stage() as it:
        it.log.keeps_texts = True
        it.append(*"abc")
        it.log.end_run(usage={"total": 3})
        it.append("x", "y", "z")
        it.log.ats["r1"] = 3
        it.log.texts["r1", Track.TEXT] = b"abc"
        it.log.entries = {}
        it.log.trim(7, void=0)
        _, link = await it.connect(cursor=cursor(0))

        part = link.control("snapshot")[0]
        assert part["end"]["usage"] == {"total": 3}
        assert "open" not in part


async def test_an_end_that_the_log_has_is_not_told_before_it() -> None:
    async with stage() as it:
        await evicted(it)
        it.log.end_run()
        _, link = await it.connect(cursor=cursor(0))

        assert "end" not in link.control("snapshot")[0]
        assert link.kinds()[-1] == "41-41"


async def test_a_fork_in_the_middle_starts_over_on_the_new_line() -> None:
    async with stage(replay_page_bytes=4_096) as it:
        it.log.keeps_texts = True
        it.append(*("x" * 500 for _ in range(40)))
        it.log.trim(30, void=0)

        def fork_once() -> None:
            if len(it.log.text_reads) == 2:
                it.log.fork(lost_writes=5)

        it.log.on_text_read = fork_once
        _, link = await it.connect(cursor=cursor(10))
        await settle(200)

        reader = Reader()
        reader.take(link)
        assert reader.texts["r1"] == it.log.texts["r1", Track.TEXT]
        assert reader.cursor.seq == 35
        assert "forked" in link.kinds()


async def test_a_log_trimmed_again_goes_on_where_each_text_was() -> None:
    async with stage(replay_page_bytes=4_096) as it:
        it.log.keeps_texts = True
        it.append(*("x" * 500 for _ in range(40)))
        it.log.trim(30, void=0)

        def trim_once() -> None:
            if len(it.log.text_reads) == 4:
                it.append(*("y" * 500 for _ in range(20)), is_heard=False)
                it.log.trim(50, void=0)

        it.log.on_text_read = trim_once
        _, link = await it.connect(cursor=cursor(0))
        await settle(200)

        reader = Reader()
        reader.take(link)
        assert reader.texts["r1"] == it.log.texts["r1", Track.TEXT]
        assert [start for _, start in it.log.text_reads].count(0) == 1


async def test_a_reader_that_fell_past_retention_is_rebuilt_not_closed() -> None:
    async with stage(unsent_bytes=16 * KIB) as it:
        it.log.keeps_texts = True
        _, link = await it.connect()
        reader = Reader()
        link.stall()
        it.append(*(f"{n} " + "x" * 2_000 for n in range(40)))
        it.log.trim(38, void=0)
        link.go_on()
        await settle(200)

        reader.take(link)
        assert reader.texts["r1"] == it.log.texts["r1", Track.TEXT]
        assert not link.control("gap")
        assert link.closed is None


async def test_an_acking_client_needs_no_ack_for_a_long_text() -> None:
    async with stage(unacked_bytes=16 * KIB) as it:
        it.log.keeps_texts = True
        it.append(*("x" * 4_000 for _ in range(60)))
        it.log.trim(60, void=0)
        connection, link = await it.connect(cursor=cursor(0), is_acking=True)
        await settle(300)

        reader = Reader()
        reader.take(link)
        assert len(reader.texts["r1"]) == 240_000
        assert connection.state is State.LIVE
        assert connection.unacked_bytes == 0


async def test_an_interrupted_run_is_rebuilt_as_far_as_it_was_seen() -> None:
    async with stage() as it:
        await evicted(it)
        it.log.cuts[ClientId("c1")] = (Cut(RunId("r1"), Seen(12, 9)),)
        _, link = await it.connect(cursor=cursor(5))

        part = link.control("snapshot")[0]
        assert (part["text"], part["cut"]) == (it.log.texts["r1", Track.TEXT][:9].decode(), True)
        assert "partial" not in part
        assert link.frames[-1]["payload"] == {"kind": "cut", "run": "r1"}
        assert link.kinds()[-1] == "31-40"


@pytest.mark.looptime
@pytest.mark.parametrize("seed", range(60))
async def test_snapshots_at_random_moments_equal_the_text(seed: int) -> None:
    """Two runs grow, the log is trimmed and forks with lost writes; clients come, break off and come again."""
    rng = random.Random(seed)
    async with stage(replay_page_bytes=4_096, merged_frame_bytes=1_024) as it:
        it.log.keeps_texts = True
        clients = [Reader() for _ in range(3)]
        links: list[FakeLink | None] = [None] * 3

        def happen() -> None:
            match rng.randrange(10):
                case 0 if it.log.head - it.log.lost > 6:
                    it.log.trim(it.log.lost + rng.randrange(1, 5), void=0)
                case 1 if it.log.head - it.log.lost > 8:
                    it.log.fork(lost_writes=rng.randrange(3))
                case _:
                    run = rng.choice(["r1", "r2"])
                    text = "".join(rng.choices('aö👍\n"x', k=rng.randrange(1, 80)))
                    it.log.append(text, run, is_heard=rng.random() < 0.9)
                    it.hub.flush()

        it.log.on_text_read = happen
        for turn in range(60):
            happen()
            await settle(3)
            n = rng.randrange(3)
            if rng.random() < 0.3:
                link = links[n]
                if link is not None:
                    clients[n].take(link)
                    it.hub.detach(connection := next(c for c in it.hub.connections if c.link is link))
                    connection.end("lost")
                _, links[n] = await it.connect(f"c{n}-{turn}", f"c{n}", cursor=clients[n].cursor)
                clients[n].taken = 0
        it.log.on_text_read = lambda: None
        it.append("last")
        await asyncio.sleep(5)  # repairs pause when a claim has newer news than they

        for client, link in zip(clients, links, strict=True):
            if link is None:
                continue
            client.take(link)
            for run in client.texts:
                wanted = it.log.texts[run, Track.TEXT]
                assert hashlib.sha256(client.texts[run]).hexdigest() == hashlib.sha256(wanted).hexdigest(), run
            assert client.cursor == it.log.log.cursor(it.log.head)
