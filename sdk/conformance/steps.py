"""The verbs of a scenario: each `_do_<verb>` is one step. Owns the scenario's server, sessions, channels and marks.

What each means to who writes scenarios: README.md beside this. Called by play.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sdk.conformance.answers import Answers
from sdk.conformance.channels import Exchange
from sdk.conformance.drivers import Driver
from sdk.conformance.scenario import Scenario, Step, verb_of
from sdk.conformance.script_log import BadScenario, ScriptLog, Span
from sdk.conformance.server import ScriptedServer
from sdk.conformance.witness import Failed, Witness, matches

WITHIN_SECONDS: Final = 20.0
"""For whatever should come at once: generous, because the machine may be busy."""
TIMING: Final = {
    "connect_timeout_ms": 3000,
    "backoff_base_ms": 40,
    "backoff_max_ms": 320,
    "stable_after_ms": 1000,
    "probe_timeout_ms": 500,
    "reorder_ms": 200,
    "ack_after_ms": 50,
    "climb_after_ms": 60_000,
}
"""Short ones, so that scenarios take a second. A scenario overrules each."""


class Steps:
    def __init__(
        self, scenario: Scenario, driver: Driver, prefix: str, folder: Path, note: Callable[[str], None]
    ) -> None:
        self._scenario = scenario
        self._driver = driver
        self._prefix = prefix
        self._folder = folder
        self.note = note
        self.log = ScriptLog(scenario.session, scenario.log)
        self.server = ScriptedServer(self.log, scenario.line, note)
        if scenario.head is not None:
            self.server.head = scenario.head
        self.server.limits |= scenario.limits or {}
        self.witnesses: dict[str, Witness] = {}
        self._answers = Answers(self.server)
        self._channels: dict[str, Exchange] = {}
        self._marks: dict[str, float] = {"start": time.monotonic()}
        self._asks = 0
        self._drivers: dict[str, Driver] = {}
        """Session -> the process that it lives in."""
        self._pages: dict[str, Driver] = {}
        self.tokens: set[str] = set()

    async def stop(self) -> None:
        """Nothing is left of it, also when it failed in the middle."""
        for name in self.witnesses:
            self.say_close(name)
            self._driver_of(name).forget(self._name(name))
        for page in self._pages.values():
            await page.end()
        await self._answers.stop()
        await self.server.stop()

    def say_close(self, session: str) -> None:
        self._driver_of(session).say({"do": "close", "s": self._name(session)})

    def is_gone(self, session: str) -> bool:
        """Its process was killed."""
        return self._driver_of(session).has_ended.is_set()

    def _driver_of(self, session: str) -> Driver:
        return self._drivers.get(session, self._driver)

    def _name(self, session: str) -> str:
        return f"{self._prefix}.{session}"

    async def do(self, step: Step) -> None:
        verb = verb_of(step)
        fields = {name: value for name, value in step.items() if name != verb}
        within = fields.pop("within", WITHIN_SECONDS)
        async with asyncio.timeout(within):
            await getattr(self, f"_do_{verb}")(step[verb], fields)

    async def _do_page(self, name: str, _fields: dict[str, Any]) -> None:
        page = Driver(self._driver.program)
        self._pages[name] = page
        await page.__aenter__()

    async def _do_kill(self, name: str, _fields: dict[str, Any]) -> None:
        await self._pages[name].kill()

    async def _do_do(self, what: str, fields: dict[str, Any]) -> None:
        session = fields.pop("session", "a")
        page = fields.pop("page", None)
        if what == "connect":
            self._drivers[session] = self._pages[page] if page else self._driver
            fields["options"] = self._options(fields.get("options", {}))
            if session in self.witnesses:
                raise BadScenario(f"session {session!r} is there already: a page that is loaded again needs a new name")
            witness = self.witnesses[session] = Witness(self.note)
            self._drivers[session].listen(self._name(session), witness.on_event)
        line = {"do": what, "s": self._name(session), **self._substituted(fields)}
        self.note(f"   do {line}")
        self._driver_of(session).say(line)

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        self.tokens |= {token for token in (options.get("token"), *options.get("tokens", ())) if token}
        timing = {**TIMING, **(self._scenario.timing or {}), **options.get("timing", {})}
        own = {"url": ["$url"], "session": self._scenario.session, "token": None, "channel": "auto", "store": "memory"}
        return {**own, **options, "timing": timing}

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
            case "$url2":
                return self.server.urls[1]
            case "$dead":
                return "http://127.0.0.1:9"
            case str() if value.endswith("$store"):
                return value.replace("$store", str(self._folder / f"{self._prefix}.json"))
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

    def _witness(self, fields: dict[str, Any]) -> Witness:
        session = fields.pop("session", "a")
        if session not in self.witnesses:
            raise BadScenario(f"no session {session!r} has connected")
        return self.witnesses[session]

    async def _do_see(self, kind: str, fields: dict[str, Any]) -> None:
        await self._witness(fields).see(kind, self._substituted(fields))

    async def _do_never_see(self, kind: str, fields: dict[str, Any]) -> None:
        witness, seconds = self._witness(fields), fields.pop("seconds")
        pattern = self._substituted(fields)
        known = len(witness.events)
        await asyncio.sleep(seconds)
        for event in witness.events[known:]:
            if event.get("event") == kind and matches(pattern, event):
                raise Failed(f"{event} came")

    async def _do_ask(self, what: str, fields: dict[str, Any]) -> None:
        """Again and again, until the answer is as it should be."""
        session, wanted = fields.get("session", "a"), self._substituted(fields["is"])
        witness = self._witness({"session": session})
        question = {name: value for name, value in fields.items() if name not in ("is", "session")}
        value: Any = None
        try:
            while True:
                self._asks += 1
                ident = f"ask{self._asks}"
                self._driver_of(session).say({"do": what, "s": self._name(session), "id": ident, **question})
                value = (await witness.see("reply", {"id": ident})).get("value")
                if matches(wanted, value):
                    return
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            self.note(f"   {what} is {value!r}, not {wanted!r}")
            raise

    async def _do_delivered(self, span: object, fields: dict[str, Any]) -> None:
        last = Span.parse(span).last
        witness = self._witness(fields)
        await witness.until(lambda: witness.position >= last)

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


__all__ = ["TIMING", "WITHIN_SECONDS", "Steps"]
