"""The verbs of a scenario: each `_do_<verb>` is one step. Here those about the driver, whose sessions it owns."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sdk.conformance.drivers import Driver
from sdk.conformance.scenario import Scenario, Step, verb_of
from sdk.conformance.script_log import BadScenario, Span
from sdk.conformance.server_steps import WITHIN_SECONDS, ServerSteps
from sdk.conformance.witness import Failed, Witness, matches

TIMING: Final = {
    "connect_timeout_ms": 3000,
    "backoff_base_ms": 40,
    "backoff_max_ms": 320,
    "stable_after_ms": 1000,
    "probe_timeout_ms": 1000,
    "reorder_ms": 200,
    "ack_after_ms": 50,
    "climb_after_ms": 60_000,
}
"""Short ones, so that scenarios take a second. A scenario overrules each."""


class Steps(ServerSteps):
    def __init__(
        self, scenario: Scenario, driver: Driver, prefix: str, folder: Path, note: Callable[[str], None]
    ) -> None:
        super().__init__(scenario, folder / f"{prefix}.json", note)
        self._scenario = scenario
        self._driver = driver
        self._prefix = prefix
        self.witnesses: dict[str, Witness] = {}
        self.tokens: set[str] = set()
        """That a driver was given."""
        self._asks = 0
        self._drivers: dict[str, Driver] = {}
        """Session -> the process that it lives in."""
        self._pages: dict[str, Driver] = {}

    async def stop(self) -> None:
        for name in self.witnesses:
            self.say_close(name)
            self._driver_of(name).forget(self._name(name))
        for page in self._pages.values():
            await page.end()
        await super().stop()

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


__all__ = ["TIMING", "Steps"]
