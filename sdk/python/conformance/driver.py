"""Drives sessions of the SDK by JSON lines on stdin, and writes what happens to stdout (sdk/conformance)."""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from relayrouter import FileStore, MemoryStore, Message, RelayError, Session, StateEvent, Timing, connect

_STARTED = time.monotonic()
_TIMES = {field for field in Timing.__dataclass_fields__ if field not in ("ack_bytes", "ladder_failures")}


def say(event: str, **fields: Any) -> None:
    t = int((time.monotonic() - _STARTED) * 1000)
    sys.stdout.write(json.dumps({"event": event, "t": t, **fields}, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


class Tokens:
    """One for each attempt, the last one again and again; `!` stands for a callback that fails."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens

    async def __call__(self) -> str:
        token = self._tokens.pop(0) if len(self._tokens) > 1 else self._tokens[0]
        await asyncio.sleep(0)
        if token == "!":
            raise ConnectionError("the token service is away")
        return token


class Driven:
    """One session and the loop that reads it."""

    def __init__(self, s: str, options: dict[str, Any]) -> None:
        self.s = s
        self.slow_seconds = 0.0
        self.session = _session(options)
        self.session.on("state", self._state)
        self.session.on("quality", lambda e: say("quality", s=s, score=e.score, level=e.level, rtt=e.rtt))
        self._listen()
        self.loop: asyncio.Task[None] | None = None

    async def run(self) -> None:
        error: RelayError | None = None
        try:
            async for message in self.session:
                self._message(message)
                if self.slow_seconds:
                    await asyncio.sleep(self.slow_seconds)
        except RelayError as exc:
            error = exc
        await self.session.close()
        say(
            "ended",
            s=self.s,
            error=type(error).__name__ if error is not None else None,
            code=error.code if error is not None else None,
            status=error.status if error is not None else None,
        )

    def start(self) -> None:
        loop = aiter(self.session)  # before it opens: what comes is the loop's
        self.session.open()
        del loop
        self.loop = asyncio.create_task(self.run())

    async def ask(self, ident: Any, work: Coroutine[Any, Any, Any]) -> None:
        try:
            value = await work
        except RelayError as exc:
            say(
                "settled", s=self.s, id=ident, ok=False, error=type(exc).__name__, code=exc.code, message=exc.message,
            )  # fmt: skip
        else:
            say("settled", s=self.s, id=ident, ok=True, value=value if isinstance(value, dict) else {"seq": value})

    def _listen(self) -> None:
        session, s = self.session, self.s
        session.on("run", lambda e: say("run", s=s, run=e.run, state=e.state, reason=e.reason))
        session.on("ask", lambda e: say("ask", s=s, ask=e.ask))
        session.on("ask_resolved", lambda e: say("ask_resolved", s=s, ask=e.ask))
        session.on("digest", lambda e: say("digest", s=s, run=e.run, ok=e.ok, healed=e.healed))
        session.on("input", lambda e: say("input", s=s, seq=e.seq, status=e.status))
        session.on("text", lambda e: say("text", s=s, run=e.run, added=e.added, is_rewritten=e.is_rewritten))
        session.on("error", lambda e: say("error", s=s, error=type(e).__name__, code=e.code, message=e.message))

    def _state(self, event: StateEvent) -> None:
        say(
            "state", s=self.s, state=event.state, channel=event.channel, cause=event.cause, retry_in=event.retry_in,
            url=event.url,
        )  # fmt: skip

    def _message(self, m: Message) -> None:
        say(
            "message", s=self.s, kind=m.kind, seq=m.seq, first_seq=m.first_seq, run=m.run, text=m.text,
            payload=m.payload, late=m.late,
        )  # fmt: skip


def _session(options: dict[str, Any]) -> Session:
    known = dict(options)
    given: dict[str, Any] = {name: known.pop(name) for name in list(known) if known[name] is None}
    given = {}
    for name in ("client", "cursor", "channel", "segments", "user", "queue_items", "queue_bytes", "rhythm"):
        if name in known:
            given[name] = known.pop(name)
    if "from" in known:
        given["from_"] = known.pop("from")
    for name in ("heartbeat", "keep_alive"):
        if f"{name}_ms" in known:
            given[name] = known.pop(f"{name}_ms") / 1000
    tokens, token = known.pop("tokens", None), known.pop("token", None)
    given["token"] = Tokens(list(tokens)) if tokens else token
    store = known.pop("store", None)
    if store == "memory":
        given["store"] = MemoryStore()
    elif store is not None:
        given["store"] = FileStore(Path(str(store).removeprefix("file:")))
    given["timing"] = _timing(known.pop("timing", None) or {})
    url, session = known.pop("url"), known.pop("session")
    known.pop("capabilities", None)
    if known:
        raise ValueError(f"unknown options: {', '.join(sorted(known))}")
    return connect(url, session=session, **given)


def _timing(given: dict[str, Any]) -> Timing:
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name.endswith("_ms") and name[:-3] in _TIMES:
            values[name[:-3]] = value / 1000
        elif name in ("ack_bytes", "ladder_failures"):
            values[name] = value
    return Timing(**values)


class Driver:
    def __init__(self) -> None:
        self._sessions: dict[str, Driven] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, line: dict[str, Any]) -> None:
        """Raises what a wrong line deserves."""
        s, what = str(line.get("s", "")), line["do"]
        if what == "connect":
            driven = self._sessions[s] = Driven(s, line["options"])
            driven.start()
            return
        driven = self._sessions[s]
        session, ident = driven.session, line.get("id")
        seen = line.get("seen")
        asks: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "send": lambda: session.send(line["payload"]),
            "interrupt": lambda: session.interrupt(line["run"], (seen[0], seen[1]) if seen else None),
            "pause": session.pause,
            "resume": session.resume,
            "cancel": lambda: session.cancel(line["run"], line.get("reason")),
            "answer": lambda: session.answer(line["ask"], line["value"]),
        }
        match what:
            case "text":
                say("reply", s=s, id=ident, value=session.text(line["run"]))
            case "status":
                status = {
                    "state": session.state, "channel": session.channel, "cursor": session.cursor,
                    "client": session.client, "queued": session.queued,
                }  # fmt: skip
                say("reply", s=s, id=ident, value=status)
            case "probe":
                session.probe()
            case "offline" | "online":
                session.set_online(what == "online")
            case "slow":
                driven.slow_seconds = line["ms"] / 1000
            case "close":
                self._start(session.close())
            case _ if what in asks:
                self._start(driven.ask(ident, asks[what]()))
            case _:
                raise ValueError(f"unknown: do={what}")

    async def end(self) -> None:
        await asyncio.gather(*(driven.session.close() for driven in self._sessions.values()))
        loops = [driven.loop for driven in self._sessions.values() if driven.loop is not None]
        await asyncio.gather(*loops, *self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def main() -> None:
    reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    driver = Driver()
    say("ready")
    while raw := await reader.readline():
        line: dict[str, Any] = {}
        try:
            line = json.loads(raw)
            if line.get("do") == "exit":
                break
            driver.take(line)
        except Exception as exc:  # noqa: BLE001  one session's failure must not take the others down
            say("driver_error", s=line.get("s"), message=f"{type(exc).__name__}: {exc}")
    await driver.end()


if __name__ == "__main__":
    asyncio.run(main())
