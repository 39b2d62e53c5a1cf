"""Plays one scenario: its steps one after the other, then what must be true at the end. Owns server and sessions."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sdk.conformance.drivers import Driver
from sdk.conformance.scenario import Scenario
from sdk.conformance.script_log import BadScenario, Span
from sdk.conformance.server_steps import WITHIN_SECONDS
from sdk.conformance.steps import Steps
from sdk.conformance.witness import Failed, Witness

END_SECONDS: Final = 10.0


@dataclass(slots=True)
class Result:
    scenario: Scenario
    problem: str | None
    """None: passed."""
    seconds: float
    transcript: list[str] = field(repr=False)


class Play:
    def __init__(self, scenario: Scenario, driver: Driver, prefix: str, folder: Path) -> None:
        """`prefix`: unique among all that this driver is asked. `folder`: for what it stores."""
        self._scenario = scenario
        self._began = time.monotonic()
        self._transcript: list[str] = []
        self._steps = Steps(scenario, driver, prefix, folder, self.note)
        self._step = "start"

    def note(self, text: str) -> None:
        self._transcript.append(f"{(time.monotonic() - self._began) * 1000:7.0f} {text}")

    async def run(self) -> Result:
        problem: str | None = None
        try:
            await self._steps.server.start()
            for number, step in enumerate(self._scenario.steps, 1):
                self._step = f"step {number}: {str(step)[:200]}"
                self.note(f"== {self._step}")
                await self._steps.do(step)
            self._step = "the end"
            await self._finish()
        except Failed as exc:
            problem = f"{self._step}: {exc}"
        except BadScenario as exc:
            problem = f"{self._step}: the scenario is wrong: {exc}"
        except TimeoutError:
            problem = f"{self._step}: did not happen in time"
        finally:
            await self._steps.stop()
        return Result(self._scenario, problem, time.monotonic() - self._began, self._transcript)

    # ---- the end -----------------------------------------------------------------------------------------------

    async def _finish(self) -> None:
        expect = self._scenario.expect
        await self._check_messages()
        for run, text in expect.get("texts", {}).items():
            wanted = self._steps.log.run_text(run) if text == "log" else text
            await self._steps.do({"ask": "text", "run": run, "is": wanted})
        for session, witness in self._steps.witnesses.items():
            witness.check()
            states = [str(event["state"]) for event in witness.of("state")]
            if session == "a" and not _has_in_order(expect.get("states", []), states):
                raise Failed(f"the states were {states}, not {expect['states']} in this order")
            if unwanted := set(states) & set(expect.get("no_states", [])):
                raise Failed(f"states {sorted(unwanted)} must not be: {states}")
        if "inbox" in expect:
            await self._steps.do({"inbox": expect["inbox"]})
        for exchange in self._steps.server.exchanges:
            if any(len(token) > 1 and token in exchange.request.raw_target for token in self._steps.tokens):
                raise Failed(f"{exchange.name} has a token in its URL")
            if exchange.kind == "other" and exchange.request.token:
                raise Failed(f"{exchange.name}, which is no part of the gateway's, was sent the token")
        await self._close_all()
        for kind, bounds in expect.get("requests", {}).items():
            self._steps.check_count(kind, bounds)

    async def _check_messages(self) -> None:
        expect = self._scenario.expect
        span = expect.get("delivered", f"1-{self._steps.log.head}" if self._steps.log.head else None)
        if "a" not in self._steps.witnesses:
            return
        witness = self._steps.witnesses["a"]
        if "kinds" in expect:
            await self._check_kinds(witness, expect["kinds"])
        if span is None:
            return
        gaps = [Span.parse(gap) for gap in expect.get("gaps", [])]
        wanted = Span.parse(span)
        last_item = wanted.last if not gaps or gaps[-1].last < wanted.last else gaps[-1].first - 1
        with suppress(TimeoutError):
            async with asyncio.timeout(WITHIN_SECONDS / 2):
                await witness.until(lambda: witness.position >= last_item)
        problems = witness.problems(self._steps.log, wanted, gaps)
        if problems:
            raise Failed("; ".join(problems[:5]))

    async def _check_kinds(self, witness: Witness, wanted: list[str]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(WITHIN_SECONDS / 2):
                await witness.until(lambda: len(witness.of("message")) >= len(wanted))
        kinds = [str(event["kind"]) for event in witness.of("message")]
        if kinds != wanted:
            raise Failed(f"the kinds of the messages were {kinds}, not {wanted}")

    async def _close_all(self) -> None:
        """`close()` leaves nothing behind: every session ends, and so does every connection."""
        if self._scenario.expect.get("leaves_open"):
            return
        for session, witness in self._steps.witnesses.items():
            if not witness.of("ended") and not self._steps.is_gone(session):
                self._steps.say_close(session)
                await _in_time(witness.ended(), f"session {session} never ended")
        for exchange in self._steps.server.exchanges:
            is_silent = exchange.kind not in ("websocket", "sse", "poll")
            if not is_silent and not exchange.cannot_end:
                await _in_time(exchange.is_over.wait(), f"{exchange.name} was left open after close()")


async def _in_time(waiting: Any, problem: str) -> None:
    try:
        async with asyncio.timeout(END_SECONDS):
            await waiting
    except TimeoutError:
        raise Failed(problem) from None


def _has_in_order(wanted: list[str], given: list[str]) -> bool:
    rest = iter(given)
    return all(state in rest for state in wanted)


__all__ = ["Play", "Result"]
