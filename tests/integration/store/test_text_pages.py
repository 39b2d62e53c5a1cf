"""Kept texts by pages: exact, in whole code points, without reading all for each page."""

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.domain.wire.ids import RunId
from gateway.ports import Appended, RunText, Track
from tests.integration.resp.servers import Server
from tests.integration.store.run_stage import RunStage, running
from tests.integration.store.stage import delta, thinking

RUN = RunId("r")
ALPHABET = 'ab \n"\\\x01é漢😀'


@pytest.fixture
async def runs(shared_server: Server) -> AsyncIterator[RunStage]:
    async with running(shared_server.address, shared_server.admin) as stage:
        yield stage


async def written(runs: RunStage, length: int, seed: int = 1) -> str:
    rng = random.Random(seed)  # printed by the parametrization
    pieces = ["".join(rng.choices(ALPHABET, k=rng.randint(0, 200))) for _ in range(length)]
    for first in range(0, length, 100):
        await runs.put(*[delta("r", piece) for piece in pieces[first : first + 100]])
    return "".join(pieces)


async def page(runs: RunStage, start: int, until: int = 1 << 30, max_bytes: int = 1 << 20) -> RunText:
    return await runs.runs.run_text(runs.ref, RUN, Track.TEXT, start, until, max_bytes)


@pytest.mark.parametrize("max_bytes", [1, 4, 24, 25, 1_000, 1 << 20])
async def test_pages_of_any_size_give_the_text(runs: RunStage, max_bytes: int) -> None:
    text = (await written(runs, 5 if max_bytes < 100 else 100)).encode()
    read = b""

    while len(read) < len(text):
        part = await page(runs, len(read), max_bytes=max_bytes)
        assert (part.start, part.kept_bytes) == (len(read), len(text))
        assert 0 < len(part.text) <= max(max_bytes, 4)
        part.text.decode()
        read += part.text

    assert read == text


async def test_any_part_of_a_text(runs: RunStage) -> None:
    text = (await written(runs, 50)).encode()
    rng = random.Random(2)
    for _ in range(100):
        start, until = sorted(rng.choices(range(len(text) + 10), k=2))

        part = await page(runs, start, until)

        assert part.start <= start or start > len(text)
        assert text[part.start :].startswith(part.text)
        assert abs(part.start + len(part.text) - max(min(until, len(text)), min(start, len(text)))) < 4
        part.text.decode()


async def test_pages_in_a_row_read_each_byte_once(runs: RunStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """880 kB in pages of 16 KiB, every tenth character escaped."""
    for _ in range(16):
        await runs.put(delta("r", "123456789\n" * 5_500))
    read: list[int] = []
    client: Any = runs.stage.client
    evaluate = client.evaluate

    def counted(script: Any, keys: Any, arguments: Any, **more: Any) -> Any:
        if script.name == "run_text":
            read.append(arguments[4] - arguments[3] + 1)
        return evaluate(script, keys, arguments, **more)

    monkeypatch.setattr(client, "evaluate", counted)
    start = 0
    while part := (await page(runs, start, max_bytes=16_384)).text:
        start += len(part)

    assert start == 16 * 55_000
    assert sum(read) < 1.2 * start
    assert max(read) == 16_384


async def test_thinking_is_a_text_of_its_own(runs: RunStage) -> None:
    await runs.put(delta("r", "text"), thinking("r", "hm"), thinking("r", "\n"))

    assert await runs.text(track=Track.THINKING) == "hm\n"
    assert await runs.text() == "text"


async def test_what_is_gone_has_no_line(runs: RunStage) -> None:
    await runs.put(delta("other", "x"))

    assert await page(runs, 0) == RunText(None, 0, b"", 0)
    await runs.stage.store.delete(runs.ref)
    assert await page(runs, 0) == RunText(None, 0, b"", 0)


async def test_a_place_in_an_older_life_of_the_run_is_not_used(runs: RunStage) -> None:
    await runs.put(delta("r", "\n\n\n\nabcd"))
    first = await page(runs, 0, max_bytes=5)
    assert first.text == b"\n\n\n\na"
    await page(runs, 0, until=8)
    await runs.stopped()
    runs.age_run(301_000)

    assert isinstance(await (await runs.opened()).append(delta("r", "01234567890123456789")), Appended)

    assert (await page(runs, 8)).text == b"890123456789"


async def test_another_server_goes_on_with_the_text(runs: RunStage) -> None:
    await runs.put(delta("r", "abc"))
    runs.admin.hset(runs.key("meta"), "inc", "f" * 40)

    part = await page(runs, 1)

    line = (await runs.plan()).log.line
    assert part == RunText(line, 1, b"bc", 3)
