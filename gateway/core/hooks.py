"""Calls what an application plugged in, so that a hook that fails or is slow harms only what its settings allow (A6).

Owns the circuit breakers and the counts. Without a hook nothing of this is on the hot path: the holders are None.
Called by runs (text), hub and resume (delivery), door (resume).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from gateway.domain.measures import Measures
from gateway.domain.wire.frames import encode_json
from gateway.ports import Clock
from gateway.ports.hooks import (
    DeliveredMessage,
    DeliveryHook,
    HookFailed,
    ResumedClient,
    ResumeHook,
    RunContext,
    TextFilter,
    TextHook,
)
from gateway.settings import HookSettings

log = structlog.get_logger()

MAX_STATE_BYTES = 512
"""Of one filter: it is stored with every append of its run."""
MAX_FIELDS_BYTES = 4 * 1024
"""Of one delivery or resume hook."""

_T = TypeVar("_T")
_H = TypeVar("_H")


class _Unfit(Exception):
    """What a hook gave back cannot be used."""


class Guarded(Generic[_H]):
    """One hook with its breaker: closed, or open until a time; then one call tries again."""

    def __init__(self, hook: _H, settings: HookSettings, measures: Measures, clock: Clock) -> None:
        self.hook = hook
        self.name = settings.name
        self.is_fatal = settings.on_error == "fail"
        self.deadline_seconds = settings.deadline_ms / 1000
        self._break_after = settings.break_after
        self._retry_after_seconds = settings.retry_after_seconds
        self._measures = measures
        self._clock = clock
        self._failures_in_a_row = 0
        self._open_until = 0.0

    @property
    def is_left_out(self) -> bool:
        return self._failures_in_a_row >= self._break_after and self._clock() < self._open_until

    def call(self, what: Callable[[], _T], instead: _T) -> _T:
        """`what()`, or `instead` when the hook is left out or failed. Raises HookFailed where that is wanted."""
        if self.is_left_out:
            return self.skipped(instead)
        began = self._clock()
        try:
            result = what()
        except Exception as exc:  # noqa: BLE001  a hook's code is not ours: whatever it raises ends here
            return self.failed(exc, instead)
        if self._clock() - began > self.deadline_seconds:
            self._count("slow")
            self._failed_once("slow")
            if self.is_fatal:
                raise HookFailed(self.name)
        else:
            self.succeeded()
        return result

    def skipped(self, instead: _T) -> _T:
        self._count("left_out")
        if self.is_fatal:
            raise HookFailed(self.name)
        return instead

    def succeeded(self) -> None:
        self._count("ok")
        self._failures_in_a_row = 0

    def failed(self, exc: Exception, instead: _T) -> _T:
        self._count("slow" if isinstance(exc, TimeoutError) else "failed")
        self._failed_once(type(exc).__name__)
        if self.is_fatal:
            raise HookFailed(self.name) from exc
        return instead

    def _failed_once(self, reason: str) -> None:
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._break_after:
            self._open_until = self._clock() + self._retry_after_seconds
            log.warning("hook_left_out", hook=self.name, reason=reason, seconds=self._retry_after_seconds)
        else:
            log.warning("hook_failed", hook=self.name, reason=reason)

    def _count(self, outcome: str) -> None:
        self._measures.hook_calls[outcome] += 1


# ---- before segmentation -----------------------------------------------------------------------------------------


class TextChain:
    """The filters of one text of one run, in their order. A filter that failed is bypassed for the rest of it."""

    def __init__(self, filters: list[tuple[Guarded[TextHook], TextFilter]]) -> None:
        self._filters = filters

    def feed(self, text: str) -> str:
        """Raises HookFailed."""
        for index in range(len(self._filters)):
            if text:
                text = self._through(index, text)
        return text

    def flush(self) -> str:
        """What any of them holds, through those after it. Raises HookFailed."""
        text = ""
        for index in range(len(self._filters)):
            text = self._through(index, text) if text else ""
            guard, filtering = self._filters[index]
            held = filtering.held
            out = _call(guard, filtering, lambda filtering=filtering: _checked_text(filtering.flush()))  # type: ignore[misc]
            if out is None:
                self._bypass(index, "")
                out = held
            text += out
        return text

    def save(self) -> bytes:
        """For `TextHooks.open`. Raises HookFailed when a state is too large or cannot be had.

        What a filter holds is saved beside it: the input's offset is past it, so it must come out whatever fails.
        """
        states = []
        for index, (guard, filtering) in enumerate(self._filters):
            state = _call(guard, filtering, lambda filtering=filtering: _checked_state(filtering.save()))  # type: ignore[misc]
            if state is None:
                self._bypass(index, filtering.held)
            is_bypassed = state is None or isinstance(filtering, _Bypass)
            states.append(_Saved(guard.name, state or b"", filtering.held, is_bypassed))
        return msgspec.msgpack.encode(states)

    def _through(self, index: int, text: str) -> str:
        guard, filtering = self._filters[index]
        held = filtering.held
        out = _call(guard, filtering, lambda: _checked_text(filtering.feed(text)))
        if out is None:
            self._bypass(index, "")
            return held + text
        return out

    def _bypass(self, index: int, held: str) -> None:
        self._filters[index] = (self._filters[index][0], _Bypass(held))


class _Bypass:
    """In the place of a filter that failed. `held`: what that one held and nobody has given on yet."""

    def __init__(self, held: str) -> None:
        self.held = held

    def feed(self, text: str) -> str:
        return self.flush() + text

    def flush(self) -> str:
        held, self.held = self.held, ""
        return held

    def save(self) -> bytes:
        return b""


def _call(guard: Guarded[TextHook], filtering: TextFilter, what: Callable[[], _T]) -> _T | None:
    """None: it failed, or is left out. What is ours is not guarded: its success says nothing of the hook."""
    return what() if isinstance(filtering, _Bypass) else guard.call(what, None)


class _Saved(msgspec.Struct, array_like=True, gc=False):
    """Of one filter."""

    name: str
    state: bytes
    held: str = ""
    is_bypassed: bool = False


_decode_saved = msgspec.msgpack.Decoder(list[_Saved]).decode


class TextHooks:
    """All text hooks of a gateway. At least one, else there is no such object."""

    def __init__(self, hooks: Sequence[Guarded[TextHook]]) -> None:
        self._hooks = hooks

    def open(self, context: RunContext, state: bytes = b"") -> TextChain | None:
        """None: no hook wants this text. `state`: of `TextChain.save`, by name. Raises HookFailed."""
        saved = {entry.name: entry for entry in _decode_saved(state)} if state else {}
        filters: list[tuple[Guarded[TextHook], TextFilter]] = []
        for guard in self._hooks:
            known = saved.get(guard.name, _Saved(guard.name, b""))
            filtering = None
            if not known.is_bypassed:
                filtering = guard.call(
                    lambda guard=guard, known=known: guard.hook.open_filter(context, known.state),  # type: ignore[misc]
                    None,
                )
            if filtering is not None or known.is_bypassed or known.held:
                filters.append((guard, filtering or _Bypass(known.held)))
        return TextChain(filters) if filters else None


# ---- before delivery ---------------------------------------------------------------------------------------------


class DeliveryHooks:
    """All delivery hooks of a gateway. At least one, else there is no such object."""

    def __init__(self, hooks: Sequence[Guarded[DeliveryHook]]) -> None:
        self._hooks = hooks

    def decorate(self, message: DeliveredMessage) -> bytes:
        """The frame, with `ext` when a hook has something to add. Raises HookFailed."""
        added: dict[str, Any] = {}
        for guard in self._hooks:
            fields = guard.call(lambda guard=guard: _checked_fields(guard.hook.fields(message)), None)  # type: ignore[misc]
            if fields:
                added |= fields
        if not added:
            return message.frame
        return message.frame[:-1] + b',"ext":' + encode_json(added) + b"}"


# ---- on reconnect ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResumeHooks:
    """All resume hooks of a gateway. At least one, else there is no such object."""

    hooks: Sequence[Guarded[ResumeHook]]

    async def states(self, client: ResumedClient) -> list[dict[str, Any]]:
        """Payloads of `state` control frames, in the order of the hooks. Raises HookFailed."""
        payloads = []
        for guard in self.hooks:
            data = await self._state(guard, client)
            if data is not None:
                payloads.append({"kind": "state", "hook": guard.name, "data": dict(data)})
        return payloads

    async def _state(self, guard: Guarded[ResumeHook], client: ResumedClient) -> Mapping[str, Any] | None:
        if guard.is_left_out:
            return guard.skipped(None)
        try:
            async with asyncio.timeout(guard.deadline_seconds):
                data = _checked_fields(await guard.hook.on_resume(client))
        except Exception as exc:  # noqa: BLE001  a hook's code is not ours: whatever it raises ends here
            return guard.failed(exc, None)
        guard.succeeded()
        return data


def _checked_text(text: object) -> str:
    if not isinstance(text, str):
        raise _Unfit("a text filter gives back text")
    return text


def _checked_state(state: object) -> bytes:
    if not isinstance(state, bytes) or len(state) > MAX_STATE_BYTES:
        raise _Unfit(f"a filter's state has at most {MAX_STATE_BYTES} bytes")
    return state


def _checked_fields(fields: object) -> Mapping[str, Any] | None:
    """Small, and JSON."""
    if fields is None:
        return None
    if not isinstance(fields, Mapping) or len(encode_json(dict(fields))) > MAX_FIELDS_BYTES:
        raise _Unfit(f"a hook gives back a mapping of at most {MAX_FIELDS_BYTES} bytes as JSON")
    return fields


__all__ = ["DeliveryHooks", "Guarded", "ResumeHooks", "TextChain", "TextHooks"]
