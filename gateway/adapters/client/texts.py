"""The text of each run as a client has it: put together from deltas, cut after lost writes, checked by `run_end`. Pure.

Returns what is new to show. Must never show a byte twice, nor one that the gateway did not send.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from gateway.adapters.client.frames import Frame

MAX_TEXT_BYTES = 64 * 1024 * 1024
"""Of one text; what is longer is shown but no longer kept, so its digest cannot be compared."""
ENDED_RUNS_KEPT = 16
"""Ended runs are kept for a while: lost writes may take back the end of one."""
_OPEN_RUNS_KEPT = 1_000

_TEXT_KINDS = {"delta": False, "code_block": False, "thinking": True}
"""Kind -> whether its text is reasoning."""


class RunText:
    """One text (answer or reasoning) of one run.

    After a cut the bytes beyond it stay as shown: a producer that sends the same again adds nothing to the screen.
    """

    def __init__(self) -> None:
        self.length = 0
        """Bytes of the run's text up to here, counted from its start."""
        self.was_rewritten = False
        """After a cut something else came than what had been shown."""
        self.is_cut_by_next = False
        """The log lost writes, and did not say how much of this text: it goes on at the next `at`."""
        self._start = 0
        self._kept = bytearray()
        """The text from byte `_start` on, perhaps beyond `length`."""

    @property
    def is_whole(self) -> bool:
        """Known from its first byte on without a hole, so that its digest can be compared."""
        return self._start == 0

    def add(self, text: str, at: int | None) -> str:
        """Take a delta; returns what of it is new. An overlap with what is there is sliced by bytes."""
        data = text.encode()
        if at is not None:
            if self.is_cut_by_next:
                self.is_cut_by_next = False
                self.cut(at)
            if at > self.length:
                self._begin_at(at)
            data = data[self.length - at :]
        here = self.length - self._start
        shown = bytes(self._kept[here : here + len(data)])
        if data and not data.startswith(shown):
            self.was_rewritten = True
            shown = b""
        if len(shown) < len(data):
            self._kept[here:] = data
        self.length += len(data)
        if len(self._kept) > MAX_TEXT_BYTES:
            self._begin_at(self.length)
        return data[len(shown) :].decode("utf-8", "replace")

    def cut(self, length: int) -> None:
        """The log goes on from here: what lies beyond is gone from it."""
        if length < self._start:
            self._begin_at(length)
        self.length = min(self.length, length)

    def restart(self) -> None:
        """The run begins (again)."""
        if self.length:
            self._begin_at(0)

    def fields(self) -> dict[str, Any]:
        """Counts and digest as `run_end` has them; only for a whole text."""
        data = bytes(self._kept[: self.length])
        return {
            "bytes": len(data),
            "code_points": len(data.decode("utf-8", "replace")),
            "sha256": hashlib.sha256(data).hexdigest(),
        }

    def value(self) -> str:
        """The text as far as it is known."""
        return self._kept[: self.length - self._start].decode("utf-8", "replace")

    def _begin_at(self, at: int) -> None:
        self._start = self.length = at
        self._kept.clear()


@dataclass(slots=True)
class Run:
    text: RunText = field(default_factory=RunText)
    reasoning: RunText = field(default_factory=RunText)
    reason: str | None = None
    """Of its end; None while it is open."""
    has_gap: bool = True
    """Some of it may never have come: until `run_start` is seen, and after a gap. Then a difference proves nothing."""


@dataclass(frozen=True, slots=True)
class Shown:
    """New text of a run, to be shown at once."""

    run: str
    text: str
    is_reasoning: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """`is_equal`: text and reasoning equal the digests of `run_end`; None when that cannot be said.

    `text`: what is new to show before it, when the end came with the last part of a snapshot.
    """

    run: str
    reason: str
    is_equal: bool | None
    text: str = ""


Change = Shown | Ended | None


class RunTexts:
    """All runs of one session as one reader sees them."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}

    def apply(self, frame: Frame) -> Change:
        """Take one frame that `Place` found to be next, or a gap, or part of a snapshot."""
        if frame.kind == "gap" and frame.is_control:
            self._gap(frame)
            return None
        if frame.kind == "snapshot" and frame.is_control and frame.run is not None:
            return self._rebuild(frame.run, frame)
        run = frame.run
        if run is None or frame.is_control:
            return None
        if frame.kind in _TEXT_KINDS:
            is_reasoning = _TEXT_KINDS[frame.kind]
            known = self._run(run)
            text = known.reasoning if is_reasoning else known.text
            return Shown(run, text.add(frame.text, frame.at), is_reasoning)
        if frame.kind == "run_start":
            known = self._run(run)
            known.text.restart()
            known.reasoning.restart()
            known.reason = None
            known.has_gap = False
        elif frame.kind == "run_end":
            return self._end(run, frame.payload)
        elif frame.kind == "cut":
            self._run(run).has_gap = True
        return None

    def _rebuild(self, run: str, frame: Frame) -> Change:
        """Part of a text from its beginning on: what is known of it already is not shown again."""
        payload = frame.payload
        known = self._run(run)
        is_reasoning = payload.get("track") == "thinking"
        text = known.reasoning if is_reasoning else known.text
        if "start" in payload:
            known.has_gap = False
            known.reason = None
        if frame.at == 0 and payload.get("cut") is not True:
            text.cut(0)
        new = text.add(frame.text, frame.at)
        if payload.get("partial") is True or payload.get("cut") is True:
            known.has_gap = True
        end = payload.get("end")
        if isinstance(end, dict):
            ended = self._end(run, end)
            return Ended(run, ended.reason, ended.is_equal, new)
        return Shown(run, new, is_reasoning)

    def _run(self, run: str) -> Run:
        known = self.runs.get(run)
        if known is None:
            known = self.runs[run] = Run()
            self._forget_old()
        return known

    def _end(self, run: str, payload: dict[str, Any]) -> Ended:
        known = self._run(run)
        known.reason = str(payload.get("reason"))
        reasoning = payload.get("reasoning")
        verdicts = [
            _equals(known.text, payload),
            _equals(known.reasoning, reasoning if isinstance(reasoning, dict) else {}),
        ]
        self.runs[run] = self.runs.pop(run)
        self._forget_old()
        if False in verdicts:
            return Ended(run, known.reason, None if known.has_gap else False)
        # A run without reasoning need not say so; its text decides.
        return Ended(run, known.reason, verdicts[0] if not known.reasoning.length else verdicts[0] and verdicts[1])

    def _gap(self, frame: Frame) -> None:
        reason = frame.payload.get("reason")
        if reason == "evicted":
            for run in self.runs.values():
                run.has_gap = True
            return  # the next delta's `at` shows what is missing
        # Another life or stretch of the log: what is still true at its base.
        lengths = _lengths(frame, "runs") or {}
        thinking = _lengths(frame, "thinking")
        for name, run in self.runs.items():
            length = lengths.get(name)
            run.text.cut(length or 0)
            if length is None or thinking is not None:
                run.reasoning.cut((thinking or {}).get(name, 0))
            else:
                run.reasoning.is_cut_by_next = True  # a gateway of before does not say
            if length is None:
                run.reason = None
                run.has_gap = True

    def _forget_old(self) -> None:
        ended = [name for name, run in self.runs.items() if run.reason is not None]
        for name in ended[: max(0, len(ended) - ENDED_RUNS_KEPT)]:
            del self.runs[name]
        while len(self.runs) > _OPEN_RUNS_KEPT:
            del self.runs[next(iter(self.runs))]


def _lengths(gap: Frame, name: str) -> dict[str, int] | None:
    """Run -> bytes; None: the gap does not say."""
    given = gap.payload.get(name) if gap.payload.get("reason") == "epoch_changed" else None
    if not isinstance(given, dict):
        return None
    return {run: length for run, length in given.items() if isinstance(length, int)}


def _equals(text: RunText, told: dict[str, Any]) -> bool | None:
    if not text.is_whole or not isinstance(told.get("sha256"), str):
        return None
    own = text.fields()
    return all(told[name] == own[name] for name in own if told.get(name) is not None)


__all__ = ["Change", "Ended", "Run", "RunText", "RunTexts", "Shown"]
