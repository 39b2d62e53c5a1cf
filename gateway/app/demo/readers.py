"""One reader of the demo: what it shows, what it has, and what its person does."""

import time
from collections import deque
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from gateway.adapters.client.frames import Frame
from gateway.adapters.client.reader import ReaderIdentity, ReaderState, SessionReader, Start
from gateway.adapters.client.settings import BackoffSettings, ReaderSettings
from gateway.adapters.client.texts import Ended, RunTexts, Shown
from gateway.app.demo.media import MediaCounts
from gateway.app.demo.tally import ReaderResult, Source

_KEPT_PIECES = 2_000
"""Of one reader, until somebody takes them; the page does so every moment, a check never."""

_PATIENCE = ReaderSettings(
    backoff=BackoffSettings(base_seconds=0.2, max_seconds=2.0),
    stable_seconds=2.0,
    connect_seconds=2.0,
    welcome_seconds=4.0,
    quiet_seconds=1.5,
    answer_seconds=2.0,
    rtt_seconds=1.0,
)
"""Impatient on purpose: a frozen gateway is left within four seconds."""

Piece = dict[str, Any]


class DemoReader:
    """`pieces` gathers what is new to show (with a bound)."""

    def __init__(self, name: str, urls: Sequence[str], session: str, source: Source) -> None:
        self.name = name
        self.media = MediaCounts()
        self.reader = SessionReader(
            urls,
            session,
            ReaderIdentity(client=name, capabilities="audio,video"),
            Start(from_start=True),
            settings=_PATIENCE,
            on_media=self.media.take,
        )
        self.result = ReaderResult(self.reader.tally)
        self.pieces: deque[Piece] = deque(maxlen=_KEPT_PIECES)
        self.open_run: str | None = None
        self.is_paused = False
        self.asked: set[str] = set()
        self.resolved: set[str] = set()
        """Asks that it has seen, and those whose outcome it has seen."""
        self.echoes = 0
        """Messages of others that it has seen."""
        self._interrupted: set[str] = set()
        self._texts = RunTexts()
        self._source = source

    async def run(self) -> None:
        """Until it is cancelled. Raises SessionEnded, which no fault of the demo may bring about."""
        async with aclosing(self.reader.frames()) as frames:
            async for frame in frames:
                self._take(frame)
                cursor = self.reader.cursor
                self.result.seq = 0 if cursor is None else cursor.seq

    def status(self) -> dict[str, Any]:
        status = self.reader.status
        cursor = self.reader.cursor
        return {
            "state": status.state.value,
            "gateway": status.gateway if status.state is ReaderState.LIVE else None,
            "rtt_ms": None if status.rtt_seconds is None else status.rtt_seconds * 1000,
            "seq": self.result.seq,
            "cursor": None if cursor is None else str(cursor),
            "paused": self.is_paused,
            "media": self.media.fields(),
        }

    def length(self, run: str) -> int:
        """Bytes of the run's text that it shows."""
        known = self._texts.runs.get(run)
        return 0 if known is None else known.text.length

    # ---- what its person does; settled over all reconnects -----------------------------------------------------

    async def interrupt(self) -> str | None:
        """The run that was ended; None when none is open here."""
        run = self.open_run
        if run is not None:
            self._interrupted.add(run)
            began = time.monotonic()
            await self.reader.interrupt(run, seen=(self.result.seq, self.length(run)))
            silent_ms = round((time.monotonic() - began) * 1000)
            self._show({"run": run, "kind": "cut", "silent_ms": silent_ms, "at": self.length(run)})
        return run

    async def toggle_pause(self) -> None:
        self.is_paused = not self.is_paused
        await (self.reader.pause() if self.is_paused else self.reader.resume())

    async def say(self, text: str) -> None:
        await self.reader.send({"text": text})
        self._show({"kind": "said", "text": text})

    async def answer(self, ask: str, value: str) -> bool:
        """Whether it was the first."""
        return bool((await self.reader.answer(ask, value)).get("winner"))

    # ---- what it shows -----------------------------------------------------------------------------------------

    def _take(self, frame: Frame) -> None:
        payload = frame.payload
        match frame.kind:
            case "ask" | "ask_open":
                ask = payload["ask"] if frame.kind == "ask_open" else payload
                if ask["ask"] in self.asked:
                    return
                self.asked.add(ask["ask"])
                self._show({"kind": "ask", "ask": ask["ask"], "text": ask["message"], "options": ask.get("options")})
                return
            case "ask_resolved":
                self.resolved.add(payload["ask"])
                shown = {name: payload.get(name) for name in ("ask", "status", "value", "client")}
                self._show({"kind": "resolved", **shown})
                return
            case "echo":
                self.echoes += payload["client"] != self.name
                if payload["client"] != self.name:
                    self._show({"kind": "echo", "client": payload["client"], "text": payload["payload"].get("text")})
                return
            case "media_dropped":
                self.media.dropped(payload)
                return
            case "run_start":
                self.open_run = frame.run
            case "thinking" if payload.get("done"):
                self._show({"run": frame.run, "kind": "thought", "duration_ms": payload.get("duration_ms")})
        match self._texts.apply(frame):
            case Shown(run, text, is_reasoning) if text:
                self._show({"run": run, "text": text, **_look(frame, is_reasoning=is_reasoning)})
            case Ended(run, _, _, text):
                if text:
                    self._show({"run": run, "kind": "delta", "text": text})
                self._end(run, payload.get("end", payload))

    def _end(self, run: str, end: dict[str, Any]) -> None:
        if self.open_run == run:
            self.open_run = None
        equal = self._source.agrees(run, self._texts.runs[run], end, is_cut=run in self._interrupted)
        self.result.equal[run] = equal
        self._show({"run": run, "kind": "end", "end": {"reason": end["reason"], "bytes": end["bytes"], "equal": equal}})

    def _show(self, piece: Piece) -> None:
        self.pieces.append(piece)


def _look(frame: Frame, *, is_reasoning: bool) -> Piece:
    if frame.kind == "code_block":
        return {"kind": "code", "block": frame.payload["block"], "language": frame.payload.get("language")}
    return {"kind": "thinking" if is_reasoning else "delta"}


__all__ = ["DemoReader", "Piece"]
