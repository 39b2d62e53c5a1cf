"""The oracle: a process of its own that holds readers and judges what they saw. JSON lines in and out.

Each question has an `id`, its answer the same one; answers come as they are ready. The end of standard input ends it.
Imports nothing of the gateway. Started by loadtest.witness.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from typing import Any

from loadtest.reader import Reader, ReaderSpec
from loadtest.truth import Truth
from loadtest.wire import Broken, Op, Refused, WebSocket

LINE_BYTES = 64 * 1024**2


class Oracle:
    """Each public method answers the question of its name."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._readers: dict[str, Reader] = {}
        self._storm: list[WebSocket] = []

    def _pick(self, names: list[str] | None) -> list[Reader]:
        return list(self._readers.values()) if names is None else [self._readers[name] for name in names]

    async def open(self, readers: list[dict[str, Any]]) -> dict[str, Any]:
        for fields in readers:
            spec = ReaderSpec.parse(fields)
            reader = self._readers[spec.name] = Reader(spec, random.Random(self._rng.random()))
            reader.start()
        return {}

    async def wait(
        self,
        seconds: float,
        names: list[str] | None = None,
        position: int | None = None,
        welcomes: int | None = None,
        gaps: int | None = None,
        ended: bool | None = None,
    ) -> dict[str, Any]:
        """Until every reader is as far as asked: `late` names those that were not in time."""

        def is_there(reader: Reader) -> bool:
            return (
                (position is None or reader.record.position >= position)
                and (welcomes is None or reader.record.controls["welcome"] >= welcomes)
                and (gaps is None or len(reader.record.view.gaps) >= gaps)
                and (ended is None or bool(reader.ended) == ended)
            )

        async def until_there(reader: Reader) -> None:
            while not is_there(reader):
                reader.changed.clear()
                await reader.changed.wait()

        readers = self._pick(names)
        began = time.monotonic()
        waits = [asyncio.create_task(until_there(reader)) for reader in readers]
        if waits:
            await asyncio.wait(waits, timeout=seconds)
        for task in waits:
            task.cancel()
        late = {r.spec.name: r.record.position for r in readers if not is_there(r)}
        return {"late": late, "seconds": time.monotonic() - began}

    async def judge(
        self,
        names: list[str] | None = None,
        truth: list[tuple[str, int, dict[str, Any]]] | None = None,
        uncertain: list[dict[str, Any]] | None = None,
        head: int | None = None,
    ) -> dict[str, Any]:
        known = None if truth is None else Truth([(line, seq, body) for line, seq, body in truth], uncertain or [])
        return {"results": [reader.result(known, head) for reader in self._pick(names)]}

    async def texts(self, name: str) -> dict[str, Any]:
        """What it shows: the text of each run."""
        view = self._readers[name].record.view
        return {"texts": view.texts("text"), "thinking": view.texts("thinking")}

    async def interrupted(self, name: str, run: str, seen_at: int = 0) -> dict[str, Any]:
        """The reader's client was told that this run is interrupted: from here on nothing of it may come."""
        self._readers[name].record.interrupted[run] = seen_at
        return {}

    async def interrupt(self, name: str, run: str, seconds: float, with_seen: bool = True) -> dict[str, Any]:
        """Interrupt a run by the newest socket: answers the acknowledgement, from which on nothing of it may come."""
        reader = self._readers[name]
        return {"accepted": await reader.questions.interrupt(run, seconds, with_seen=with_seen)}

    async def ask(self, name: str, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Say it on the newest socket: answers the `accepted` or `error` that names it by `what` and `id` or `seq`."""
        return {"answer": await self._readers[name].questions.ask(message, seconds)}

    async def frames(self, name: str) -> dict[str, Any]:
        """Every text frame that it applied: first, seq, payload."""
        applied = self._readers[name].record.view.applied
        return {"frames": [[frame.first, frame.seq, frame.payload] for frame in applied]}

    async def hold(self, names: list[str]) -> dict[str, Any]:
        for reader in self._pick(names):
            reader.hold()
        return {}

    async def go_on(self, names: list[str]) -> dict[str, Any]:
        for reader in self._pick(names):
            reader.go_on()
        return {}

    async def drop(self, names: list[str], newest_only: bool = False) -> dict[str, Any]:
        for reader in self._pick(names):
            reader.drop(newest_only=newest_only)
        return {}

    async def move(self, name: str, url: str = "") -> dict[str, Any]:
        return {"is_open": await self._readers[name].move(url)}

    async def send(self, name: str, message: dict[str, Any]) -> dict[str, Any]:
        self._readers[name].say(message)
        return {}

    async def close(self, names: list[str] | None = None) -> dict[str, Any]:
        readers = self._pick(names)
        await asyncio.gather(*(reader.stop() for reader in readers))
        for reader in readers:
            self._readers.pop(reader.spec.name, None)
        return {}

    async def storm(self, urls: list[str], session: str, count: int, at_once: int, seconds: float) -> dict[str, Any]:
        """`count` clients of as many sessions connect, one try each. Those that got in stay until `calm`."""
        outcomes: Counter[str] = Counter()
        welcomed = 0
        slots = asyncio.Semaphore(at_once)
        times: list[float] = []

        async def connect(number: int) -> None:
            nonlocal welcomed
            async with slots:
                began = time.monotonic()
                try:
                    path = f"/v1/sessions/{session}-{number}/ws?client=storm"
                    ws = await WebSocket.open(urls[number % len(urls)], path, timeout_seconds=seconds)
                except Refused as exc:
                    has_hint = "retry-after" in exc.answer.headers
                    outcomes[f"{exc.answer.status}{'' if has_hint else ' without Retry-After'}"] += 1
                except (Broken, OSError) as exc:
                    outcomes[type(exc).__name__] += 1
                else:
                    self._storm.append(ws)
                    outcomes["101"] += 1
                    welcomed += await _is_welcomed(ws, seconds)
                times.append(time.monotonic() - began)

        async with asyncio.timeout(seconds * 3):
            await asyncio.gather(*(connect(number) for number in range(count)))
        return {"outcomes": dict(outcomes), "welcomed": welcomed, "slowest_seconds": max(times)}

    async def watch_ends(self, seconds: float) -> dict[str, Any]:
        """Until every socket of the storm was closed by the server: which codes, and how many were told before."""
        sockets, self._storm = self._storm, []
        closes: Counter[str] = Counter()
        told = 0

        async def watch(ws: WebSocket) -> None:
            nonlocal told
            was_told = False
            try:
                while True:
                    for frame in await ws.frames():
                        if frame.op is Op.TEXT:
                            was_told = was_told or json.loads(frame.payload)["payload"]["kind"] == "reconnect_later"
                        elif frame.op is Op.CLOSE:
                            closes[str(frame.close_code)] += 1
                            told += was_told
                            ws.send(Op.CLOSE, frame.payload[:2])
                            return
            except Broken:
                closes["1006"] += 1
            finally:
                await ws.shut()

        async with asyncio.timeout(seconds):
            await asyncio.gather(*(watch(ws) for ws in sockets))
        return {"closes": dict(closes), "told": told}

    async def calm(self) -> dict[str, Any]:
        """All sockets of the storm leave in order."""
        sockets, self._storm = self._storm, []
        for ws in sockets:
            ws.send_close()
        await asyncio.gather(*(ws.shut() for ws in sockets))
        return {"left": len(sockets)}


async def _is_welcomed(ws: WebSocket, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            while True:
                for frame in await ws.frames():
                    if frame.op is Op.TEXT:
                        return bool(json.loads(frame.payload)["payload"]["kind"] == "welcome")
                    if frame.op is Op.CLOSE:
                        return False
    except (Broken, TimeoutError):
        return False


async def _answer(oracle: Oracle, line: bytes) -> None:
    question = json.loads(line)
    ident, op = question.pop("id"), question.pop("op")
    try:
        answer = await getattr(oracle, op)(**question)
    except Exception as exc:  # noqa: BLE001  the border: the driver raises it
        answer = {"failed": f"{type(exc).__name__}: {exc}"}
    sys.stdout.write(json.dumps({"id": ident, **answer}) + "\n")
    sys.stdout.flush()


async def _serve(seed: int) -> None:
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    oracle = Oracle(seed)
    answering: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        task = asyncio.create_task(_answer(oracle, line))
        answering.add(task)
        task.add_done_callback(answering.discard)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m loadtest.oracle", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    asyncio.run(_serve(parser.parse_args().seed))


if __name__ == "__main__":
    main()
