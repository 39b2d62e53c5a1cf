"""The text of each run as a client has it: put together from deltas, cut after lost writes, checked by `run_end`. Pure.

Returns what is new to show. Must never show a byte twice, nor one that the gateway did not send.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from relayrouter.cursor import Cursor
from relayrouter.messages import TEXT_KINDS, Frame

MAX_TEXT_BYTES = 64 * 1024 * 1024
"""Of one text; what is longer is shown but no longer kept, so its digest cannot be compared."""
ENDED_RUNS_KEPT = 16
"""Ended runs are kept for a while: lost writes may take back the end of one."""
_OPEN_RUNS_KEPT = 1_000


class RunText:
    """One text (answer or reasoning) of one run.

    After a cut the bytes beyond it stay as shown: a producer that sends the same again adds nothing to the screen.
    """

    def __init__(self) -> None:
        self.length = 0
        """Bytes of the run's text up to here, counted from its start."""
        self.is_cut_by_next = False
        """The log lost writes, and did not say how much of this text: it goes on at the next `at`."""
        self.has_hole = False
        """A part of it was skipped and not announced: whatever its digest is, it is not this."""
        self._start = 0
        self._kept = bytearray()
        """The text from byte `_start` on, perhaps beyond `length`."""

    @property
    def is_whole(self) -> bool:
        """Known from its first byte on without a hole, so that its digest can be compared."""
        return self._start == 0

    def add(self, text: str, at: int | None) -> tuple[str, bool]:
        """Take a delta; returns what of it is new, and whether it replaced something that had been shown."""
        data = text.encode("utf-8", "surrogatepass")
        if at is not None:
            if self.is_cut_by_next:
                self.is_cut_by_next = False
                self.cut(at)
            if at > self.length:
                self._begin_at(at)
                self.has_hole = True
            data = data[self.length - at :]
        here = self.length - self._start
        shown = bytes(self._kept[here : here + len(data)])
        is_rewritten = False
        if data and not data.startswith(shown):
            is_rewritten = True
            shown = b""
        if len(shown) < len(data):
            self._kept[here:] = data
        self.length += len(data)
        if len(self._kept) > MAX_TEXT_BYTES:
            self._begin_at(self.length)
        return data[len(shown) :].decode("utf-8", "replace"), is_rewritten

    def cut(self, length: int) -> None:
        """The log goes on from here: what lies beyond is gone from it."""
        if length < self._start:
            self._begin_at(length)
        if length == 0:
            self.has_hole = False
        self.length = min(self.length, length)

    def restart(self) -> None:
        """The run begins (again)."""
        self.has_hole = False
        if self.length:
            self._begin_at(0)

    def replace(self, text: str) -> None:
        """The whole text from its beginning on."""
        self.has_hole = False
        self._begin_at(0)
        self._kept += text.encode("utf-8", "surrogatepass")
        self.length = len(self._kept)

    def equals(self, told: dict[str, Any]) -> bool | None:
        """By the counts and the digest of a `run_end`; None when that cannot be said."""
        if not isinstance(told.get("sha256"), str):
            return None
        if self.has_hole:
            return False
        if not self.is_whole:
            return None
        data = bytes(self._kept[: self.length])
        if told["sha256"] != hashlib.sha256(data).hexdigest():
            return False
        size = told.get("bytes")
        return size is None or size == len(data)

    def value(self) -> str:
        """The text as far as it is known."""
        return self._kept[: self.length - self._start].decode("utf-8", "replace")

    def _begin_at(self, at: int) -> None:
        self._start = self.length = at
        self._kept.clear()


@dataclass(slots=True)
class Run:
    """`reason` is that of its end, None while it is open. `begin`: the position before its `run_start`."""

    text: RunText = field(default_factory=RunText)
    reasoning: RunText = field(default_factory=RunText)
    reason: str | None = None
    has_gap: bool = True
    """Some of it may never have come: until `run_start` is seen, and after a gap. Then a difference proves nothing."""
    begin: Cursor | None = None
    was_healed: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What a frame did to the runs. `ended`: the payload of the run's end that came with it."""

    run: str | None = None
    added: str = ""
    is_rewritten: bool = False
    is_reasoning: bool = False
    started: dict[str, Any] | None = None
    ended: dict[str, Any] | None = None
    is_equal: bool | None = None
    """With `ended`: text and reasoning equal its digests; None when that cannot be said."""


_NOTHING = Change()


class RunTexts:
    """All runs of one session as one reader sees them."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}

    def apply(self, frame: Frame, before: Cursor | None = None) -> Change:
        """Take one frame that is next. `before`: the position before it."""
        if frame.is_control:
            if frame.kind == "gap":
                self._gap(frame)
            elif frame.kind == "snapshot" and frame.run is not None:
                return self._rebuild(frame.run, frame, before)
            return _NOTHING
        run = frame.run
        if run is None:
            return _NOTHING
        if frame.kind in TEXT_KINDS:
            known = self._run(run)
            is_reasoning = frame.kind == "thinking"
            text = known.reasoning if is_reasoning else known.text
            added, is_rewritten = text.add(frame.text, frame.at)
            return Change(run, added, is_rewritten, is_reasoning)
        if frame.kind == "run_start":
            known = self._run(run)
            known.text.restart()
            known.reasoning.restart()
            known.reason = None
            known.has_gap = known.was_healed = False
            known.begin = before
            return Change(run, started=frame.payload)
        if frame.kind == "run_end":
            return self._end(run, frame.payload)
        if frame.kind == "cut":
            self.skip(run)
        return Change(run)

    def skip(self, run: str) -> None:
        """Some of its text is not shown, or not known: its digest proves nothing."""
        self._run(run).has_gap = True

    def _rebuild(self, run: str, frame: Frame, before: Cursor | None) -> Change:
        """Part of a text from its beginning on: what is known of it already is not shown again."""
        payload = frame.payload
        known = self._run(run)
        is_reasoning = payload.get("track") == "thinking"
        text = known.reasoning if is_reasoning else known.text
        start = payload.get("start")
        if isinstance(start, dict):
            known.has_gap = known.was_healed = False
            known.reason = None
            known.begin = before
        if frame.at == 0 and payload.get("cut") is not True:
            text.cut(0)
        added, is_rewritten = text.add(frame.text, frame.at)
        if payload.get("partial") is True or payload.get("cut") is True:
            known.has_gap = True
        started = start if isinstance(start, dict) else None
        end = payload.get("end")
        if isinstance(end, dict):
            ended = self._end(run, end)
            return Change(run, added, is_rewritten, is_reasoning, started, end, ended.is_equal)
        return Change(run, added, is_rewritten, is_reasoning, started)

    def _run(self, run: str) -> Run:
        known = self.runs.get(run)
        if known is None:
            known = self.runs[run] = Run()
            self._forget_old()
        return known

    def _end(self, run: str, payload: dict[str, Any]) -> Change:
        known = self._run(run)
        known.reason = str(payload.get("reason"))
        told = payload.get("reasoning")
        verdicts = [known.text.equals(payload), known.reasoning.equals(told if isinstance(told, dict) else {})]
        self.runs[run] = self.runs.pop(run)
        self._forget_old()
        if False in verdicts:
            return Change(run, ended=payload, is_equal=None if known.has_gap else False)
        # A run need not say anything of its reasoning: then its text decides.
        is_judged = isinstance(told, dict) and isinstance(told.get("sha256"), str) and known.reasoning.length > 0
        is_equal = verdicts[0] and verdicts[1] if is_judged else verdicts[0]
        return Change(run, ended=payload, is_equal=is_equal)

    def _gap(self, frame: Frame) -> None:
        reason = frame.payload.get("reason")
        if reason in ("evicted", "partial", "too_large", "missing"):
            for run in self.runs.values():
                run.has_gap = True
            return  # the next delta's `at` shows what is missing
        # Another life or stretch of the log: `runs` names what is still true at its base.
        lengths = _lengths(frame, "runs") if reason == "epoch_changed" else {}
        thinking = _lengths(frame, "thinking")
        for name, run in self.runs.items():
            length = lengths.get(name)
            run.text.cut(length or 0)
            if "thinking" in frame.payload:
                run.reasoning.cut(thinking.get(name, 0))
            else:
                run.reasoning.is_cut_by_next = length is not None
            if length is None:
                run.reasoning.cut(0)
                run.reason = None
                run.has_gap = True

    def _forget_old(self) -> None:
        ended = [name for name, run in self.runs.items() if run.reason is not None]
        for name in ended[: max(0, len(ended) - ENDED_RUNS_KEPT)]:
            del self.runs[name]
        while len(self.runs) > _OPEN_RUNS_KEPT:
            del self.runs[next(iter(self.runs))]


def _lengths(frame: Frame, name: str) -> dict[str, int]:
    """Bytes of each run at the base of a gap."""
    told = frame.payload.get(name)
    return {run: size for run, size in told.items() if isinstance(size, int)} if isinstance(told, dict) else {}


__all__ = ["ENDED_RUNS_KEPT", "MAX_TEXT_BYTES", "Change", "Run", "RunText", "RunTexts"]
