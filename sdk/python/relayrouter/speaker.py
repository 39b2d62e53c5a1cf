"""Brings what the user says to the gateway by whichever channel there is: on the WebSocket itself, else by POST."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from relayrouter.channel import Channel
from relayrouter.endings import error_of
from relayrouter.errors import RelayError
from relayrouter.http import TRANSPORT_ERRORS, Answer, Http
from relayrouter.input_queue import WINDOW, Entry, InputQueue
from relayrouter.poll import PollChannel
from relayrouter.requests import Pending, Requests, error_of_frame
from relayrouter.states import ChannelKind

_RETRY_SECONDS = 0.5


class Speaker:
    """`run` and `run_controls` for ever. `save` persists the queue before anything of it goes out."""

    def __init__(
        self,
        http: Http,
        client: Callable[[], str],
        requests: Requests,
        inputs: InputQueue,
        save: Callable[[], Awaitable[None]],
        on_interrupted: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._http = http
        self._client = client
        self._requests = requests
        self._inputs = inputs
        self._save = save
        self._on_interrupted = on_interrupted
        self._clock = clock
        self._channel: Channel | None = None
        self._input_wake = asyncio.Event()
        self._control_wake = asyncio.Event()

    # ---- what the session tells --------------------------------------------------------------------------------

    def wake(self) -> None:
        self._input_wake.set()
        self._control_wake.set()

    def attach(self, channel: Channel, welcome: dict[str, Any]) -> None:
        """A channel is live: everything that is open is said on it."""
        self._channel = channel
        seq, limits = welcome.get("input_seq"), welcome.get("limits")
        limit = limits.get("message_bytes") if isinstance(limits, dict) else None
        self._inputs.welcome(seq if isinstance(seq, int) else None, limit if isinstance(limit, int) else None)
        self._requests.lost()
        if self._requests.is_paused and not self._requests.steers():
            self._pause_anew(channel)
        self.wake()

    def detach(self) -> None:
        self._channel = None
        self._inputs.lost()
        self._requests.lost()

    def take(self, payload: dict[str, Any]) -> bool:
        """An `accepted` or `error` frame. False: it answers nothing of ours."""
        if payload.get("what") == "input":
            seq = payload.get("seq")
            if not isinstance(seq, int):
                return False
            if payload.get("kind") == "accepted":
                self._inputs.accepted(seq)
            else:
                self._refuse(seq, payload)
            self.wake()
            return True
        pending = self._requests.settle(payload)
        if pending is None:
            return False
        self._settled(pending, payload)
        return True

    # ---- inputs ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            self._input_wake.clear()
            channel = self._channel
            is_socket = channel is not None and channel.kind is ChannelKind.WEBSOCKET
            due = self._inputs.due(self._clock(), WINDOW if is_socket else 1) if channel is not None else []
            if not due:
                await self._until_woken()
                continue
            await self._save()
            if channel is None or channel is not self._channel:
                continue
            if is_socket:
                for entry in due:
                    channel.say(entry.to_text())
                    self._inputs.sent(entry)
                await self._until_woken()
            else:
                await self._post_input(due[0])

    async def _until_woken(self) -> None:
        wait = self._inputs.not_before - self._clock()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait if wait > 0 else None):
                await self._input_wake.wait()

    async def _post_input(self, entry: Entry) -> None:
        seq = entry.seq
        if seq is None:
            return
        self._inputs.sent(entry)
        answer = await self._post("input", entry.to_body(self._client()))
        if answer is None:
            self._inputs.lost()
            await asyncio.sleep(_RETRY_SECONDS)
        elif answer.status == 200:
            self._inputs.accepted(seq)
        else:
            self._refuse(seq, _as_frame(answer))

    def _refuse(self, seq: int, payload: dict[str, Any]) -> None:
        error = error_of_frame(payload)
        error.retryable = payload.get("retryable") is True
        expected, after_ms = payload.get("expected"), payload.get("after_ms")
        self._inputs.refused(
            seq,
            error,
            expected if isinstance(expected, int) else None,
            after_ms if isinstance(after_ms, int | float) else None,
            self._clock(),
        )

    # ---- controls ----------------------------------------------------------------------------------------------

    async def run_controls(self) -> None:
        while True:
            self._control_wake.clear()
            channel = self._channel
            for pending in self._requests.unsaid() if channel is not None else ():
                pending.is_said = True
                if channel is None or channel.say(pending.to_text()):
                    continue
                await self._post_control(channel, pending)
            if channel is None or not self._requests.unsaid():
                await self._control_wake.wait()

    async def _post_control(self, channel: Channel, pending: Pending) -> None:
        if isinstance(channel, PollChannel) and pending.kind in ("pause", "resume"):
            if pending.kind == "pause":
                channel.pause()
            else:
                channel.go_on()
            self._settle(pending, {"kind": "accepted", "what": pending.kind, "id": pending.ident})
            return
        body = json.dumps(pending.payload | {"client": self._client()}, ensure_ascii=False).encode()
        answer = await self._post("control", body)
        if answer is None:
            await asyncio.sleep(_RETRY_SECONDS)
            pending.is_said = False
        elif answer.status == 200:
            self._settle(pending, {"kind": "accepted", **(answer.body or {}), "id": pending.ident})
        else:
            self._settle(pending, _as_frame(answer) | {"id": pending.ident})

    def _settle(self, pending: Pending, payload: dict[str, Any]) -> None:
        if self._requests.settle(payload | {"what": pending.kind}) is not None:
            self._settled(pending, payload)

    def _settled(self, pending: Pending, payload: dict[str, Any]) -> None:
        run = pending.payload.get("run")
        if pending.kind == "interrupt" and payload.get("kind") == "accepted" and isinstance(run, str):
            self._on_interrupted(run)

    def _pause_anew(self, channel: Channel) -> None:
        if isinstance(channel, PollChannel):
            channel.pause()
        else:
            self._requests.pause_anew()

    async def _post(self, what: str, body: bytes) -> Answer | None:
        """None: nobody of ours answered. A token that was refused is fetched anew, once."""
        for attempt in range(2):
            try:
                answer = await self._http.post(what, body)
            except TRANSPORT_ERRORS:
                return None
            if answer.status != 401 or attempt:
                return answer if answer.is_ours else None
            with suppress(RelayError):
                await self._http.credentials.fetch()
        return None


def _as_frame(answer: Answer) -> dict[str, Any]:
    """The payload of the `error` frame that says the same."""
    told = error_of(answer.body) or {}
    details = told.get("details")
    after_ms = answer.after_seconds * 1000 if answer.after_seconds is not None else None
    given = details if isinstance(details, dict) else {}
    retryable = told.get("retryable") is True or answer.status >= 500
    return {**given, **told, "kind": "error", "status": answer.status, "after_ms": after_ms, "retryable": retryable}


__all__ = ["Speaker"]
