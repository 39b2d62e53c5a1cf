"""The driver's side of the oracle's process: questions out, answers in, verdicts as values.

Owns the process. Must never judge by itself. Called by fault tests and soak.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtest.oracle import LINE_BYTES
from loadtest.publisher import Ledger


class OracleFailed(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one reader saw. See reader.Reader.result for `raw`."""

    raw: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.raw["name"])

    @property
    def findings(self) -> dict[str, int]:
        """Everything that must not be: lost, repeated, reordered, wrong, bad_gap, ... Empty: flawless."""
        found: dict[str, int] = self.raw["findings"]
        return found

    @property
    def details(self) -> list[str]:
        details: list[str] = self.raw["details"]
        return details

    @property
    def gap_ranges(self) -> list[tuple[int, int, str]]:
        return [(gap["first"], gap["last"], gap["reason"]) for gap in self.raw["gaps"]]

    @property
    def applied(self) -> int:
        return int(self.raw["applied"])

    @property
    def closes(self) -> dict[str, int]:
        closes: dict[str, int] = self.raw["closes"]
        return closes

    def count(self, name: str) -> int:
        return int(self.raw["counts"].get(name, 0))

    def events(self, what: str) -> list[dict[str, Any]]:
        return [event for event in self.raw["timeline"] if event["what"] == what]


class Witness:
    """The oracle, as a driver sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, log_path: Path, seed: int) -> "Witness":
        with log_path.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "loadtest.oracle",
                "--seed",
                str(seed),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=LINE_BYTES,
            )
        return cls(process)

    async def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(5):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            answer = json.loads(line)
            waiting = self._waiting.pop(answer.pop("id"), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(OracleFailed("the oracle's process ended"))

    async def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Raises OracleFailed."""
        assert self._process.stdin is not None
        ident = next(self._ids)
        future = self._waiting[ident] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"id": ident, "op": op, **fields}).encode() + b"\n")
        answer: dict[str, Any] = await future
        if "failed" in answer:
            raise OracleFailed(f"{op}: {answer['failed']}")
        return answer

    async def open(self, *readers: dict[str, Any]) -> None:
        """Fields of reader.ReaderSpec."""
        await self.ask("open", readers=list(readers))

    async def wait(self, seconds: float, names: Sequence[str] | None = None, **what: Any) -> float:
        """Seconds it took. AssertionError naming who was not as far in time."""
        answer = await self.ask("wait", seconds=seconds, names=None if names is None else list(names), **what)
        assert not answer["late"], f"not {what} within {seconds} s: {answer['late']}"
        return float(answer["seconds"])

    async def judge(
        self, ledger: Ledger | None = None, names: Sequence[str] | None = None, *, head: int | None = None
    ) -> list[Verdict]:
        """Compare with what the publishers know. `head`: where everybody must stand; default: the ledger's."""
        fields: dict[str, Any] = {"names": None if names is None else list(names)}
        if ledger is not None:
            fields["truth"] = [(entry.line, entry.seq, entry.payload) for entry in ledger.entries]
            fields["uncertain"] = ledger.uncertain
            fields["head"] = ledger.head if head is None else head
        answer = await self.ask("judge", **fields)
        return [Verdict(result) for result in answer["results"]]


__all__ = ["OracleFailed", "Verdict", "Witness"]
