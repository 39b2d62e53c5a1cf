"""Hooks that fail, are slow, or give back nonsense harm only what their settings allow."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.core.hooks import DeliveryHooks, Guarded, ResumeHooks, TextHooks
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import ClientId, RunId, SessionId, Tenant, UserId
from gateway.ports import Track
from gateway.ports.hooks import DeliveredMessage, HookFailed, ResumedClient, RunContext
from gateway.settings import HookSettings

CONTEXT = RunContext(Tenant("t"), SessionId("s"), RunId("r"), Track.TEXT)
MESSAGE = DeliveredMessage(Tenant("t"), SessionId("s"), 1, b'{"type":"text","payload":{}}')
CLIENT = ResumedClient(Tenant("t"), SessionId("s"), ClientId("c"), UserId("u"), "full", "e.f.1")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Guards:
    """Makes guarded hooks of one gateway."""

    def __init__(self) -> None:
        self.measures = Measures()
        self.clock = Clock()

    def guard(self, hook: Any, **settings: Any) -> Guarded[Any]:
        given = HookSettings(name="h", target="a:b", break_after=2, retry_after_seconds=10, **settings)
        return Guarded(hook, given, self.measures, self.clock)


@pytest.fixture
def guards() -> Guards:
    return Guards()


class Pairs:
    """Gives text back two characters at a time, upside down in case; fails when it meets `!`."""

    def __init__(self) -> None:
        self.opened = 0

    def open_filter(self, context: RunContext, state: bytes) -> "Pairs.Open":
        self.opened += 1
        return Pairs.Open(state.decode())

    class Open:
        def __init__(self, held: str) -> None:
            self.held = held

        def feed(self, text: str) -> str:
            if "!" in text:
                raise RuntimeError("met it")
            text = self.held + text
            end = len(text) - len(text) % 2
            self.held = text[end:]
            return text[:end].upper()

        def flush(self) -> str:
            held, self.held = self.held, ""
            return held.upper()

        def save(self) -> bytes:
            return self.held.encode()


def test_text_passes_all_filters_and_flush_gives_what_they_hold(guards: Guards) -> None:
    chain = TextHooks([guards.guard(Pairs())]).open(CONTEXT)
    assert chain is not None

    fed = chain.feed("abc") + chain.feed("de")

    assert fed == "ABCD"
    assert chain.flush() == "E"
    assert guards.measures.hook_calls["ok"] == 4


def test_a_chain_goes_on_elsewhere_from_its_state(guards: Guards) -> None:
    hooks = TextHooks([guards.guard(Pairs())])
    chain = hooks.open(CONTEXT)
    assert chain is not None
    chain.feed("abc")

    moved = hooks.open(CONTEXT, chain.save())

    assert moved is not None
    assert moved.feed("d") == "CD"


def test_a_failing_filter_is_bypassed_and_no_text_is_lost(guards: Guards) -> None:
    chain = TextHooks([guards.guard(Pairs())]).open(CONTEXT)
    assert chain is not None

    out = chain.feed("abc") + chain.feed("d!") + chain.feed("ef") + chain.flush()

    assert out == "ABcd!ef"
    assert guards.measures.hook_calls["failed"] == 1


class Unsaved(Pairs):
    """Its state cannot be had."""

    def open_filter(self, context: RunContext, state: bytes) -> "Unsaved.Open":
        return Unsaved.Open(state.decode())

    class Open(Pairs.Open):
        def save(self) -> bytes:
            raise RuntimeError("no state")


def test_a_filter_that_cannot_be_saved_is_bypassed_here_and_elsewhere_and_no_text_is_lost(guards: Guards) -> None:
    """What it held is behind the offset of the input: nobody sends it again."""
    hooks = TextHooks([guards.guard(Unsaved())])
    chain = hooks.open(CONTEXT)
    assert chain is not None
    chain.feed("abc")

    state = chain.save()
    moved = hooks.open(CONTEXT, state)

    assert chain.feed("de") == "cde"
    assert moved is not None
    assert (moved.feed("de"), moved.feed("f"), moved.flush()) == ("cde", "f", "")


def test_a_filter_that_cannot_be_opened_again_loses_no_text(guards: Guards) -> None:
    chain = TextHooks([guards.guard(Pairs())]).open(CONTEXT)
    assert chain is not None
    chain.feed("abc")

    class Broken:
        def open_filter(self, context: RunContext, state: bytes) -> None:
            raise RuntimeError("broken")

    moved = TextHooks([guards.guard(Broken())]).open(CONTEXT, chain.save())

    assert moved is not None
    assert moved.flush() == "c"


def test_what_a_filter_held_when_its_flush_failed_comes_once(guards: Guards) -> None:
    """A pause flushes, and more text follows."""

    class Stuck(Pairs):
        def open_filter(self, context: RunContext, state: bytes) -> "Stuck.Open":
            return Stuck.Open(state.decode())

        class Open(Pairs.Open):
            def flush(self) -> str:
                raise RuntimeError("stuck")

    chain = TextHooks([guards.guard(Stuck())]).open(CONTEXT)
    assert chain is not None

    assert chain.feed("abc") + chain.flush() + chain.feed("de") + chain.flush() == "ABcde"


def test_a_fatal_filter_says_which_hook_failed(guards: Guards) -> None:
    chain = TextHooks([guards.guard(Pairs(), on_error="fail")]).open(CONTEXT)
    assert chain is not None

    with pytest.raises(HookFailed, match="hook `h` failed"):
        chain.feed("!")


class Failing:
    """Fails as long as told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails = True

    def fields(self, message: DeliveredMessage) -> Mapping[str, Any] | None:
        self.calls += 1
        if self.fails:
            raise KeyError(message.seq)
        return {"tag": "x"}


def test_the_breaker_opens_after_failures_in_a_row_and_one_call_tries_again(guards: Guards) -> None:
    hook = Failing()
    hooks = DeliveryHooks([guards.guard(hook)])

    for _ in range(5):
        hooks.decorate(MESSAGE)
    calls_before = hook.calls
    guards.clock.now = 10.0
    hook.fails = False
    frame = hooks.decorate(MESSAGE)

    assert calls_before == 2
    assert guards.measures.hook_calls == {"failed": 2, "left_out": 3, "ok": 1}
    assert frame == b'{"type":"text","payload":{},"ext":{"tag":"x"}}'


def test_an_open_breaker_of_a_fatal_hook_refuses(guards: Guards) -> None:
    hooks = DeliveryHooks([guards.guard(Failing(), on_error="fail")])

    for _ in range(3):
        with pytest.raises(HookFailed):
            hooks.decorate(MESSAGE)

    assert guards.measures.hook_calls["left_out"] == 1


class Slow:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def fields(self, message: DeliveredMessage) -> Mapping[str, Any] | None:
        self.clock.now += 0.2
        return {"tag": "late"}


def test_a_slow_call_is_counted_and_its_result_used(guards: Guards) -> None:
    frame = DeliveryHooks([guards.guard(Slow(guards.clock))]).decorate(MESSAGE)

    assert frame.endswith(b'"ext":{"tag":"late"}}')
    assert guards.measures.hook_calls["slow"] == 1


class Giving:
    def __init__(self, given: Any) -> None:
        self.given = given

    def fields(self, message: DeliveredMessage) -> Any:
        return self.given


@pytest.mark.parametrize("given", ["text", {"a": "x" * 5_000}, {"a": object()}])
def test_what_cannot_be_sent_is_a_failure(guards: Guards, given: Any) -> None:
    assert DeliveryHooks([guards.guard(Giving(given))]).decorate(MESSAGE) == MESSAGE.frame
    assert guards.measures.hook_calls["failed"] == 1


class Waiting:
    async def on_resume(self, client: ResumedClient) -> Mapping[str, Any] | None:
        await asyncio.Event().wait()
        return None


class Stating:
    async def on_resume(self, client: ResumedClient) -> Mapping[str, Any] | None:
        return {"client": client.client}


async def test_a_resume_hook_that_hangs_ends_at_its_deadline_and_the_next_one_is_asked(guards: Guards) -> None:
    hooks = ResumeHooks([guards.guard(Waiting(), deadline_ms=1), guards.guard(Stating())])

    states = await hooks.states(CLIENT)

    assert states == [{"kind": "state", "hook": "h", "data": {"client": "c"}}]
    assert guards.measures.hook_calls == {"slow": 1, "ok": 1}
