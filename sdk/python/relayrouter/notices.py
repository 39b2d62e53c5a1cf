"""Control frames that are no part of the order: answers, slots, asks, the end of a token, rhythm."""

import json
from contextlib import suppress
from typing import Any

from relayrouter.applied import Applied
from relayrouter.channel import Start
from relayrouter.connector import Connector
from relayrouter.credentials import Credentials
from relayrouter.errors import RelayError
from relayrouter.events import Events, HookEvent, RhythmEvent
from relayrouter.media import read_dropped
from relayrouter.messages import Frame
from relayrouter.place import Place
from relayrouter.requests import error_of_frame
from relayrouter.running import Running
from relayrouter.speaker import Speaker


class Notices:
    """`connector` is set before the first frame."""

    def __init__(
        self,
        events: Events,
        applied: Applied,
        place: Place,
        speaker: Speaker,
        credentials: Credentials,
        start: Start,
    ) -> None:
        self._events = events
        self._applied = applied
        self._place = place
        self._speaker = speaker
        self._credentials = credentials
        self._start = start
        self.connector: Connector | None = None

    def take(self, running: Running, frame: Frame) -> None:
        payload = frame.payload
        match frame.kind:
            case "welcome" if self._applied.cursor is None:
                self._applied.cursor = self._place.cursor
            case "accepted" | "error":
                if not self._speaker.take(payload) and frame.kind == "error":
                    self._take_error(running, payload)
            case "reconnect_later" if not running.was_retired and self.connector is not None:
                self.connector.set_slot((_number(payload, "after_ms") or 0.0) / 1000)
            case "ask_open":
                ask = payload.get("ask")
                if isinstance(ask, dict):
                    self._applied.open_ask(ask)
            case "expiring":
                self._start("renew", self._renew(running))
            case "rhythm":
                run, rate, gap = payload.get("run"), _number(payload, "tokens_per_s"), _number(payload, "gap_ms")
                if isinstance(run, str) and rate is not None and gap is not None:
                    self._events.emit("rhythm", RhythmEvent(run, rate, gap))
            case "media_dropped":
                self._events.emit("media_dropped", read_dropped(payload))
            case "state":
                self._events.emit("hook", HookEvent(str(payload.get("hook")), payload.get("data")))
            case _:
                pass

    def _take_error(self, running: Running, payload: dict[str, Any]) -> None:
        """It answers nothing of ours: a word before a close, mostly."""
        if payload.get("retryable") is not True or "what" in payload:
            self._events.emit("error", error_of_frame(payload))
            return
        after_ms = _number(payload, "after_ms")
        if after_ms is not None and self.connector is not None and not running.was_retired:
            self.connector.note_hint(after_ms / 1000)

    async def _renew(self, running: Running) -> None:
        """The token ends soon: in band where the channel can, else by another channel."""
        before = self._credentials.token
        with suppress(RelayError):
            token = await self._credentials.fetch()
            if token is None or token == before:
                return
            text = json.dumps({"type": "control", "payload": {"kind": "auth", "token": token}})
            if not running.channel.say(text) and self.connector is not None:
                self.connector.move()


def _number(payload: dict[str, Any], name: str) -> float | None:
    value = payload.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


__all__ = ["Notices"]
