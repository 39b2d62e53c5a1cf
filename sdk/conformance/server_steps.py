"""The verbs of a scenario that are about its server: what it takes, answers, says, hears. Owns server and channels.

What each means to who writes scenarios: README.md beside this. Steps adds what is about the driver.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sdk.conformance.answers import Answers
from sdk.conformance.channels import Exchange
from sdk.conformance.scenario import Scenario
from sdk.conformance.script_log import BadScenario, ScriptLog
from sdk.conformance.server import ScriptedServer
from sdk.conformance.witness import Failed, matches

WITHIN_SECONDS: Final = 20.0
"""For whatever should come at once: generous, because the machine may be busy."""


class ServerSteps:
    def __init__(self, scenario: Scenario, store: Path, note: Callable[[str], None]) -> None:
        """`store`: the file that `$store` stands for."""
        self.note = note
        self.log = ScriptLog(scenario.session, scenario.log)
        self.server = ScriptedServer(self.log, scenario.line, note)
        if scenario.head is not None:
            self.server.head = scenario.head
        self.server.limits |= scenario.limits or {}
        self._store = store
        self._answers = Answers(self.server)
        self._channels: dict[str, Exchange] = {}
        self._marks: dict[str, float] = {"start": time.monotonic()}

    async def stop(self) -> None:
        """Nothing is left of it, also when it failed in the middle."""
        await self._answers.stop()
        await self.server.stop()

    def _substituted(self, value: Any) -> Any:
        """`$url`, `$url2`: the server's two addresses; `$dead`: nobody listens; `$store`: a file of this scenario;
        `$w1.connection`, `$w1.client`: of what a `take` named; `$w1.heard`: the id of what `hear` heard last.
        """
        match value:
            case dict():
                return {name: self._substituted(item) for name, item in value.items()}
            case list():
                return [self._substituted(item) for item in value]
            case "$url":
                return self.server.urls[0]
            case str() if value.startswith("$url2"):
                return value.replace("$url2", self.server.urls[1])
            case "$dead":
                return "http://127.0.0.1:9"
            case str() if value.endswith("$store"):
                return value.replace("$store", str(self._store))
            case str() if value.startswith("$"):
                name, _, what = value[1:].partition(".")
                exchange = self._channel(name)
                match what:
                    case "connection":
                        return exchange.connection
                    case "heard":
                        return exchange.heard[exchange.heard_index - 1]["payload"].get("id")
                    case _:
                        return exchange.request.query.get(what)
            case _:
                return value

    def _channel(self, name: str) -> Exchange:
        if name not in self._channels:
            raise BadScenario(f"no `take` is named {name!r}")
        return self._channels[name]

    async def _do_take(self, kind: str, fields: dict[str, Any]) -> None:
        exchange = await self.server.take(kind)
        self._channels[fields.get("as", kind)] = exchange
        for name, value in fields.get("habits", {}).items():
            setattr(exchange.habits, name, value)
        self._check_request(exchange, fields)
        self._check_times(exchange.at, fields)
        if kind in ("websocket", "sse") or fields.keys() & {"reply", "poll", "hang", "reset"}:
            await self._answers.answer(exchange, self._substituted(fields))

    async def _do_answer(self, name: str, fields: dict[str, Any]) -> None:
        await self._answers.answer(self._channel(name), self._substituted(fields))

    def _check_request(self, exchange: Exchange, fields: dict[str, Any]) -> None:
        request = exchange.request
        for given, wanted in (
            (request.query, fields.get("query", {})),
            (request.headers, {name.lower(): value for name, value in fields.get("headers", {}).items()}),
        ):
            for name, value in self._substituted(wanted).items():
                if not matches(value, given.get(name)):
                    raise Failed(f"{exchange.name} has {name}={given.get(name)!r}, not {value!r}")
        if "path" in fields and request.raw_target.partition("?")[0] != fields["path"]:
            raise Failed(f"{exchange.name} has the path {request.raw_target!r}, not {fields['path']!r}")
        if "position" in fields and not matches(fields["position"], request.position):
            raise Failed(f"{exchange.name} goes on from {request.position!r}, not from {fields['position']!r}")
        if "token" in fields and request.token != fields["token"]:
            raise Failed(f"{exchange.name} has the token {request.token!r}, not {fields['token']!r}")
        if "body" in fields and not matches(self._substituted(fields["body"]), request.json()):
            raise Failed(f"{exchange.name} has the body {request.json()!r}, not {fields['body']!r}")

    def _check_times(self, at: float, fields: dict[str, Any]) -> None:
        since = (at - self._marks[fields.get("since", "start")]) * 1000
        if since < fields.get("at_least_ms", 0):
            raise Failed(f"came after {since:.0f} ms, not before {fields['at_least_ms']}")
        if since > fields.get("at_most_ms", float("inf")):
            raise Failed(f"came only after {since:.0f} ms, not by {fields['at_most_ms']}")

    async def _do_rule(self, rules: dict[str, Any], _fields: dict[str, Any]) -> None:
        for kind, value in rules.items():
            await self.server.set_rule(kind, self._answers.rule_of(self._substituted(value)))

    async def _do_send(self, name: str, fields: dict[str, Any]) -> None:
        frames = self._substituted(fields["frames"])
        await self._answers.send(self._channel(name), frames, fields.get("bytes_per_second"))

    async def _do_welcome(self, name: str, fields: dict[str, Any]) -> None:
        await self._answers.send(self._channel(name), [{"welcome": self._substituted(fields)}])

    async def _do_habits(self, name: str, fields: dict[str, Any]) -> None:
        for habit, value in fields["are"].items():
            setattr(self._channel(name).habits, habit, value)

    async def _do_hear(self, name: str, fields: dict[str, Any]) -> None:
        wanted = self._substituted(fields["frame"])
        await self._channel(name).hear(lambda frame: matches(wanted, frame))
        self._check_times(time.monotonic(), fields)

    async def _do_never_hear(self, name: str, fields: dict[str, Any]) -> None:
        exchange = self._channel(name)
        wanted = self._substituted(fields["frame"])
        await asyncio.sleep(fields["seconds"])
        for frame in exchange.heard[exchange.heard_index :]:
            if matches(wanted, frame):
                raise Failed(f"{exchange.name} said {frame}")

    async def _do_close(self, name: str, fields: dict[str, Any]) -> None:
        self._channel(name).close(fields.get("code", 1000), fields.get("reason", ""))

    async def _do_end(self, name: str, _fields: dict[str, Any]) -> None:
        self._channel(name).end()

    async def _do_reset(self, name: str, _fields: dict[str, Any]) -> None:
        self._channel(name).reset()

    async def _do_mute(self, name: str, _fields: dict[str, Any]) -> None:
        self._channel(name).mute()

    async def _do_stall(self, name: str, _fields: dict[str, Any]) -> None:
        self._channel(name).stall()

    async def _do_gone(self, name: str, fields: dict[str, Any]) -> None:
        """The client has closed it, or its connection."""
        exchange = self._channel(name)
        if "code" in fields:
            async with exchange.changed:
                while exchange.client_close is None:
                    await exchange.changed.wait()
            if exchange.client_close != fields["code"]:
                raise Failed(f"{exchange.name} was closed with {exchange.client_close}, not {fields['code']}")
        else:
            await exchange.is_over.wait()
        self._check_times(time.monotonic(), fields)

    async def _do_still_open(self, name: str, fields: dict[str, Any]) -> None:
        await asyncio.sleep(fields.get("seconds", 0))
        exchange = self._channel(name)
        if exchange.is_over.is_set() or exchange.client_close is not None:
            raise Failed(f"{exchange.name} was ended by the client")

    async def _do_server(self, what: str, _fields: dict[str, Any]) -> None:
        match what:
            case "stop":
                await self.server.stop_listening()
            case "start":
                await self.server.start()
            case "ignore_tcp" | "serve_tcp":
                self.server.ignores_tcp = what == "ignore_tcp"
            case _:
                raise BadScenario(f"the server can stop, start, ignore_tcp, serve_tcp, not {what!r}")

    async def _do_log(self, head: object, fields: dict[str, Any]) -> None:
        """Publish up to there; who plays hears of it."""
        self.server.line = fields.get("line", self.server.line)
        self.server.head = int(str(head))
        async with self.server.changed:
            self.server.changed.notify_all()

    async def _do_limits(self, limits: dict[str, int], _fields: dict[str, Any]) -> None:
        self.server.limits |= limits

    async def _do_inbox(self, wanted: list[Any], _fields: dict[str, Any]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(WITHIN_SECONDS / 2), self.server.changed:
                while self.server.inbox.payloads() != wanted:
                    await self.server.changed.wait()
        if self.server.inbox.payloads() != wanted:
            raise Failed(f"the inbox has {self.server.inbox.payloads()}, not {wanted}")

    async def _do_quiet(self, kinds: str | list[str], fields: dict[str, Any]) -> None:
        names = [kinds] if isinstance(kinds, str) else kinds
        before = {kind: self.server.count(kind) for kind in names}
        await asyncio.sleep(fields["seconds"])
        for kind, known in before.items():
            if self.server.count(kind) != known:
                raise Failed(f"{self.server.count(kind) - known} {kind} requests came")

    async def _do_counted(self, kind: str, fields: dict[str, Any]) -> None:
        """Waits for `at_least`."""
        async with self.server.changed:
            while self.server.count(kind) < fields.get("at_least", 0):
                await self.server.changed.wait()
        self.check_count(kind, fields)

    def check_count(self, kind: str, bounds: dict[str, int]) -> None:
        count = self.server.accepted_connections if kind == "tcp" else self.server.count(kind)
        if not bounds.get("at_least", 0) <= count <= bounds.get("at_most", 10**9):
            raise Failed(f"{count} {kind} requests came, not {bounds}")

    async def _do_mark(self, name: str, _fields: dict[str, Any]) -> None:
        self._marks[name] = time.monotonic()

    async def _do_elapsed(self, since: str, fields: dict[str, Any]) -> None:
        self._check_times(time.monotonic(), {**fields, "since": since})

    async def _do_sleep(self, seconds: float, _fields: dict[str, Any]) -> None:
        await asyncio.sleep(seconds)


__all__ = ["WITHIN_SECONDS", "ServerSteps"]
