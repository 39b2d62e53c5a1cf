"""Reads one session for ever: through deaths of gateways, on whichever of its URLs answers, without a hole or a repeat.

Owns the cursor. Used by `relayrouter tail` and the demo. Creates no task: it works while its frames are awaited.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, assert_never

import aiohttp

from gateway.adapters.client.address import check_base, decision_url, retry_after_seconds, socket_url
from gateway.adapters.client.backoff import Backoff
from gateway.adapters.client.endings import Ending, check_again, ending_of_status
from gateway.adapters.client.frames import BadFrame, Frame
from gateway.adapters.client.gateway_round import GatewayRound
from gateway.adapters.client.link import Link
from gateway.adapters.client.place import Offer, Place, Tally
from gateway.adapters.client.requests import Requests
from gateway.adapters.client.settings import READER_DEFAULTS, ReaderSettings
from gateway.adapters.client.status import LIVE, NewToken, ReaderIdentity, ReaderState, ReaderStatus, Start
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.cursor import Cursor

SUBPROTOCOL = "relayrouter.v1"
_MAX_FRAME_BYTES = 4 * 1024 * 1024
_MAX_WORDS_BYTES = 200
"""Of an answer in plain text that says why there is no upgrade."""
_POSITION_KINDS = ("welcome", "gap", "forked", "snapshot")


@dataclass(slots=True)
class _Slot:
    """When a draining gateway asked this client to come back."""

    at: float | None = None

    def set(self, frame: Frame, now: float) -> None:
        after_ms = frame.payload.get("after_ms")
        if isinstance(after_ms, int | float):
            self.at = now + after_ms / 1000

    def take(self, now: float) -> float | None:
        """Seconds until then, once; None when there is no slot, or it has passed."""
        at, self.at = self.at, None
        return at - now if at is not None and at > now else None


class SessionReader:
    """`frames` yields every frame but pongs, each message once and in order; raises SessionEnded when that is over."""

    def __init__(
        self,
        urls: Sequence[str],
        session: str,
        identity: ReaderIdentity | None = None,
        start: Start = LIVE,
        settings: ReaderSettings = READER_DEFAULTS,
        *,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_status: Callable[[ReaderStatus], None] = lambda _status: None,
        on_media: Callable[[bytes], None] = lambda _frame: None,
    ) -> None:
        if not urls:
            raise ValueError("a reader needs the URL of at least one gateway")
        self._session = session
        self._identity = identity or ReaderIdentity()
        self._token = self._identity.token
        self._token_is_new = False
        self._start = start
        self._settings = settings
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311 - jitter and order, not a secret
        self._round = GatewayRound([check_base(url) for url in urls], self._rng)
        self._backoff = Backoff(settings.backoff, self._rng)
        self._on_status = on_status
        self._on_media = on_media
        self._place = Place(start.cursor)
        self._slot = _Slot()
        self._is_streaming = False
        self._requests = Requests()
        self.status = ReaderStatus()

    @property
    def client(self) -> str:
        return self._identity.client

    @property
    def cursor(self) -> Cursor | None:
        """After the last message applied; None before the first welcome."""
        return self._place.cursor

    @property
    def tally(self) -> Tally:
        return self._place.tally

    # ---- what it says ------------------------------------------------------------------------------------------
    # Settled while somebody awaits `frames`, over all reconnects. Raise RequestRefused, and ReaderClosed at the end.

    async def send(self, payload: dict[str, Any]) -> int:
        """A message to the agent; returns its number when it is durable."""
        return await self._requests.send(payload)

    async def interrupt(self, run: str, *, seen: tuple[int, int] | None = None) -> dict[str, Any]:
        """End the run: when this returns, no more of its text comes. `seen`: last message applied, bytes shown."""
        told = None if seen is None else {"seq": seen[0], "at": seen[1]}
        return await self._requests.control("interrupt", run=run, seen=told)

    async def cancel(self, run: str, reason: str | None = None) -> dict[str, Any]:
        return await self._requests.control("cancel", run=run, reason=reason)

    async def pause(self) -> None:
        """No text until `resume`; also on later connections."""
        await self._requests.control("pause")

    async def resume(self) -> None:
        await self._requests.control("resume")

    async def answer(self, ask: str, value: Any) -> dict[str, Any]:
        """Says by `winner` whether it was the first valid answer, and how the ask was resolved."""
        return await self._requests.control("answer", ask=ask, value=value)

    # ---- what it reads -----------------------------------------------------------------------------------------

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """Close the iterator (`contextlib.aclosing`) to leave: what was applied is acknowledged then."""
        async with aiohttp.ClientSession() as http:
            try:
                while True:
                    received: Frame | Ending
                    link = await self._connect(http)
                    if isinstance(link, Ending):
                        await self._wait_after(link)
                        continue
                    try:
                        while not isinstance(received := await self._next(link), Ending):
                            yield received
                    finally:
                        self._requests.lost()
                        await link.close()
                    self._note_end(link, received)
                    await self._wait_after(received)
            finally:
                self._requests.close()
                self._set_state(ReaderState.CLOSED)

    async def _next(self, link: Link) -> Frame | Ending:
        while True:
            received = await link.receive()
            if isinstance(received, Ending):
                return received
            try:
                offer = self._take(link, received)
            except BadFrame as exc:
                return Ending(None, str(exc))
            match offer:
                case Offer.NEXT:
                    if received.is_control and received.kind == "welcome":
                        await self._requests.welcome(link, received.payload)
                    return received
                case Offer.HOLE:
                    return Ending(None, "a message is missing: asking again from the cursor")
                case Offer.REPEAT:
                    continue
                case _:
                    assert_never(offer)

    # ---- one connection ----------------------------------------------------------------------------------------

    async def _connect(self, http: aiohttp.ClientSession) -> Link | Ending:
        url = self.status.url = self._round.url
        self._set_state(ReaderState.CONNECTING)
        query = self._query()
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                ws = await http.ws_connect(
                    socket_url(url, self._session, query),
                    protocols=(SUBPROTOCOL,),
                    headers=headers,
                    autoping=False,
                    max_msg_size=_MAX_FRAME_BYTES,
                    timeout=aiohttp.ClientWSTimeout(ws_close=1.0),
                )
        except aiohttp.WSServerHandshakeError as exc:
            message = await self._explain(http, url, query, headers)
            return ending_of_status(exc.status, message, retry_after_seconds(exc.headers))
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            return Ending(None, str(exc) or f"no answer within {self._settings.connect_seconds:g} s")
        link = Link(ws, self._settings, self._clock, self._on_media)
        link.is_streaming = self._is_streaming
        return link

    async def _explain(
        self, http: aiohttp.ClientSession, url: str, query: dict[str, str], headers: dict[str, str]
    ) -> str:
        """Ask the same URL without an upgrade why it refused; empty when it does not say."""
        with suppress(aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError):
            async with asyncio.timeout(self._settings.connect_seconds):
                async with http.get(decision_url(url, self._session, query), headers=headers) as response:
                    if response.content_type == "text/plain":  # a port that speaks TLS, or a proxy
                        return _first_line(await response.content.read(_MAX_WORDS_BYTES))
                    body = await response.json(content_type=None)
                    return str(body["error"]["message"])
        return ""

    def _query(self) -> dict[str, str]:
        query = {"client": self._identity.client, "ack": "1"}
        if self._identity.capabilities:
            query["caps"] = self._identity.capabilities
        if self._place.cursor is not None:
            query["cursor"] = str(self._place.cursor)
        elif self._start.seq is not None:
            query["last_received_seq"] = str(self._start.seq)
        elif self._start.from_start:
            query["from"] = "start"
        if self._settings.heartbeat_seconds is not None:
            query["heartbeat"] = str(self._settings.heartbeat_seconds)
        if self.status.connection is not None:
            # The old socket may look alive to its gateway: it is replaced, which is no take-over by somebody else.
            query["replaces"] = self.status.connection
        return query

    def _take(self, link: Link, frame: Frame) -> Offer:
        if frame.is_control:
            self._take_control(link, frame)
            self.status.rtt_seconds = link.rtt_seconds
            return Offer.NEXT
        offer = self._place.offer(frame)
        if offer is not Offer.HOLE and frame.seq is not None:
            self._is_streaming = link.is_streaming = frame.kind != "run_end"
            link.note_applied(self._place.seq, len(frame.raw))
            self._backoff.reset()
        self.status.rtt_seconds = link.rtt_seconds
        return offer

    def _take_control(self, link: Link, frame: Frame) -> None:
        if frame.kind in ("accepted", "error"):
            self._requests.settle(frame.payload)
        if frame.kind in _POSITION_KINDS and (frame.kind != "snapshot" or "cursor" in frame.payload):
            self._place.follow(frame)
            link.start_from(self._place.seq)
        if frame.kind == "welcome":
            link.is_welcome = True
            self._token_is_new = False
            self.status.gateway = _text(frame, "gateway")
            self.status.connection = _text(frame, "connection")
            self.status.resumed = _text(frame, "resumed")
            self._set_state(ReaderState.LIVE)
        elif frame.kind == "reconnect_later" or (
            frame.kind == "error" and frame.payload.get("retryable") is True and "what" not in frame.payload
        ):
            self._slot.set(frame, self._clock())

    def _note_end(self, link: Link, ending: Ending) -> None:
        if link.is_welcome and self._clock() - link.opened_at >= self._settings.stable_seconds:
            self._backoff.reset()
        if ending.code is not None:
            self.status.connection = None  # closed by its gateway: nothing to replace
        self.status.gateway = None

    # ---- between two connections -------------------------------------------------------------------------------

    async def _wait_after(self, ending: Ending) -> None:
        """Raises SessionEnded when the ending is final."""
        self.status.cause = ending.reason or f"closed with {ending.code}"
        has_new_token = self._identity.new_token is not None and not self._token_is_new
        check_again(ending, has_new_token=has_new_token)
        if ending.code == CloseCode.UNAUTHENTICATED and self._identity.new_token is not None:
            self._token = await self._identity.new_token()
            self._token_is_new = True
        self._round.move()
        slot = self._slot.take(self._clock())
        self.status.wait_seconds = self._backoff.next_delay_seconds(max(ending.after_seconds or 0.0, slot or 0.0))
        self._set_state(ReaderState.WAITING)
        await asyncio.sleep(self.status.wait_seconds)

    def _set_state(self, state: ReaderState) -> None:
        self.status.state = state
        self._on_status(self.status)


def _text(frame: Frame, name: str) -> str | None:
    value = frame.payload.get(name)
    return value if isinstance(value, str) else None


def _first_line(words: bytes) -> str:
    """Of a stranger: nothing that moves a terminal's cursor."""
    line = words.decode(errors="replace").strip().partition("\n")[0]
    return "".join(letter for letter in line if letter.isprintable())


__all__ = ["SUBPROTOCOL", "NewToken", "ReaderIdentity", "ReaderState", "ReaderStatus", "SessionReader", "Start"]
