"""Gateways, the links to them, one publisher and several sessions of one driver; judged at the end. One per fault."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

from loadtest.plain_http import NoAnswer, ask_once
from loadtest.processes import Gateway, Server
from loadtest.publisher import Ledger, Publisher
from loadtest.stage import Stage
from sdk.conformance.drivers import Driver
from sdk.conformance.real.link import Link
from sdk.conformance.real.truth import inbox_problems, wrong_with
from sdk.conformance.witness import Failed, Witness

READERS: Final = 4
RUNS: Final = 3
SETTLE_SECONDS: Final = 45.0
PACE_SECONDS: Final = 0.02
INPUT_SECONDS: Final = 0.25
TIMING: Final = {
    "connect_timeout_ms": 3000,
    "backoff_base_ms": 100,
    "backoff_max_ms": 1000,
    "probe_timeout_ms": 1500,
    "climb_after_ms": 2000,
}


class Scene:
    """`async with Scene(folder, seed, driver, name) as scene`."""

    def __init__(self, folder: Path, seed: int, driver: Driver, name: str) -> None:
        self.name = name
        self.driver = driver
        self.transcript: list[str] = []
        self.gateways: list[Gateway] = []
        self.links: list[Link] = []
        self.readers: dict[str, Witness] = {}
        self.ledger = Ledger()
        self.server: Server
        self._stage = Stage(folder, seed)
        self._stack = AsyncExitStack()
        self._began = time.monotonic()
        self._sent: dict[str, list[str]] = {}
        self._publisher: Publisher

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._stage)
        self.server = self._stage.server(is_persistent=True)
        settings = {"retention__max_messages": "100000", "retention__max_bytes": "64 MiB"}
        self.gateways = await self._stage.start_gateways(2, self.server.url, **settings)
        for gateway in self.gateways:
            parts = urlsplit(gateway.url)
            link = Link((str(parts.hostname), int(parts.port or 0)))
            await link.start()
            self._stack.push_async_callback(link.stop)
            self.links.append(link)
        self._publisher = self._stage.publisher(self.gateways, "real", self.ledger, name="agent", deadline_seconds=40)
        return self

    async def __aexit__(self, *exc: object) -> None:
        for name in self.readers:
            self.driver.say({"do": "close", "s": self._name(name)})
            self.driver.forget(self._name(name))
        await self._stack.aclose()

    def note(self, text: str) -> None:
        self.transcript.append(f"{(time.monotonic() - self._began) * 1000:7.0f} {text}")

    def _name(self, reader: str) -> str:
        return f"{self.name}.{reader}"

    # ---- readers and writers -----------------------------------------------------------------------------------

    async def seat(self, count: int = READERS, **options: Any) -> None:
        """Readers that are live; every second one begins at the second address."""
        for number in range(count):
            name = f"r{number}"
            urls = [link.url for link in self.links]
            given = {
                "url": urls[number % 2 :] + urls[: number % 2],
                "session": "real",
                "token": None,
                "client": f"{self.name}-{name}",
                "from": "start",
                "channel": "auto",
                "heartbeat_ms": 5000,
                "store": "memory",
                "timing": TIMING,
            }
            witness = self.readers[name] = Witness(self.note)
            self.driver.listen(self._name(name), witness.on_event)
            self.driver.say({"do": "connect", "s": self._name(name), "options": {**given, **options}})
        for witness in self.readers.values():
            await self.within(witness.see("state", {"state": "live"}), "a reader is live")

    @asynccontextmanager
    async def talk(self) -> AsyncIterator[None]:
        """Somebody publishes, and the readers write to the agent, until the block ends."""
        is_over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._publish(is_over))
            group.create_task(self._write(is_over))
            try:
                yield
            finally:
                is_over.set()

    async def _publish(self, is_over: asyncio.Event) -> None:
        number = 0
        while not is_over.is_set():
            run = f"run{number % RUNS}"
            await self._publisher.publish({"kind": "delta", "run": run, "text": f"{run}·{number} "})
            number += 1
            await asyncio.sleep(PACE_SECONDS)

    async def _write(self, is_over: asyncio.Event) -> None:
        number = 0
        while not is_over.is_set():
            for name in self.readers:
                text = f"input {number}"
                self._sent.setdefault(name, []).append(text)
                payload = {"by": name, "text": text}
                self.driver.say({"do": "send", "s": self._name(name), "id": number, "payload": payload})
            number += 1
            await asyncio.sleep(INPUT_SECONDS)

    # ---- what must be true -------------------------------------------------------------------------------------

    async def within(self, waiting: Awaitable[Any], what: str, seconds: float = SETTLE_SECONDS) -> Any:
        """Raises Failed."""
        try:
            async with asyncio.timeout(seconds):
                return await waiting
        except TimeoutError:
            raise Failed(f"not within {seconds} s: {what}") from None

    async def judge(self) -> None:
        """Everybody has everything once; every input is with the agent once. Raises Failed."""
        log = self.ledger.effective()
        head = self.ledger.head
        for name, witness in self.readers.items():
            await self.within(witness.until(lambda w=witness: w.position >= head), f"{name} has message {head}")  # type: ignore[misc]
            sent = len(self._sent.get(name, []))
            await self.within(
                witness.until(lambda w=witness, n=sent: len(w.of("settled")) >= n),  # type: ignore[misc]
                f"the inputs of {name} are settled",
            )
        for name, witness in self.readers.items():
            refused = [event for event in witness.of("settled") if not event.get("ok")]
            problems = [f"{name}: input was refused: {refused[:3]}"] if refused else []
            messages = [event for event in witness.of("message") if (event.get("seq") or 0) <= head]
            problems += [f"{name}: {problem}" for problem in wrong_with(messages, log, head)]
            problems += [f"{name} ended: {event}" for event in witness.of("ended")]
            if problems:
                raise Failed("; ".join(problems[:4]))
            await self._check_texts(name, witness)
        problems = inbox_problems(await self._inbox(), self._sent)
        if problems:
            raise Failed("; ".join(problems[:2]))
        if crashes := self._stage.crashes():
            raise Failed(f"a gateway logged: {crashes[0]}")

    async def _check_texts(self, name: str, witness: Witness) -> None:
        for run, text in self.ledger.texts().items():
            ident = f"text-{run}"
            self.driver.say({"do": "text", "s": self._name(name), "id": ident, "run": run})
            reply = await self.within(witness.see("reply", {"id": ident}), f"{name} answers")
            if reply.get("value") != text:
                raise Failed(f"{name}: the text of {run} is not the source's")

    async def _inbox(self) -> list[dict[str, Any]]:
        """Everything that waits for the agent."""
        items: list[dict[str, Any]] = []
        while True:
            body = {"consumer": "judge", "max": 100, "lease_ms": 30000, "wait": 0}
            try:
                answer = await ask_once(self.gateways[0].url, "POST", "/v1/inbox/take", body)
            except NoAnswer as exc:
                raise Failed(f"the inbox did not answer: {exc}") from exc
            taken = answer.json()["items"]
            if not taken:
                return items
            items += [entry["item"] for entry in taken]
            receipts = {"consumer": "judge", "items": [entry["receipt"] for entry in taken]}
            await ask_once(self.gateways[0].url, "POST", "/v1/inbox/ack", receipts)


Fault = Callable[[Scene], Awaitable[None]]

__all__ = ["Fault", "Scene"]
