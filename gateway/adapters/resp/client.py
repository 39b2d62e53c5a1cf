"""The gateway's calls to Redis: the connection's life, and scripts that the server may have lost.

Owns the reconnect loop and the incarnation. Must never let one caller's end disturb another's answer (failure catalogue
R25). Called by adapters.redis_store; the owner of tasks starts `run`.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Self

import structlog

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.backoff import Backoff
from gateway.adapters.resp.calls import Calls
from gateway.adapters.resp.commands import Argument
from gateway.adapters.resp.connection import Connection, Repeat
from gateway.adapters.resp.handshake import INFO, greet, open_socket, parse_server
from gateway.adapters.resp.health import is_answered
from gateway.adapters.resp.primary import Primary
from gateway.adapters.resp.replies import Reply, ReplyError
from gateway.adapters.resp.scripts import Script
from gateway.domain.measures import Measures
from gateway.ports import StoreUnavailable
from gateway.settings.redis import RedisSettings

log = structlog.get_logger()

ANOTHER_SERVER: Final = "another server answers"
"""The reason of what was not sent because it names the one before."""
StateListener = Callable[[bool, str], None]
"""`is_up` and why it changed."""


class Client(Calls):
    """`call`, `send`, `post`, `flush` and what they promise: see Calls."""

    def __init__(
        self,
        address: Address,
        settings: RedisSettings,
        *,
        rng: random.Random,
        measures: Measures,
        name: str,
        scripts: Sequence[Script] = (),
        on_state: StateListener = lambda _is_up, _reason: None,
    ) -> None:
        """`name` is for CLIENT LIST. `scripts` are loaded at each connect, before any call, and after NOSCRIPT."""
        super().__init__(
            call_timeout_seconds=settings.call_timeout_seconds, max_pending_bytes=settings.max_pending_bytes
        )
        self.incarnation = ""
        """`master_replid`, read at connect, before any call, and with each health ping; while down the last known."""
        self._primary = Primary(address, settings)
        self._attempt: Connection | None = None
        self._settings = settings
        self._measures = measures
        self._name = name
        self._scripts = tuple(scripts)
        self._on_state = on_state
        self._backoff = Backoff(settings.backoff_min_ms, settings.backoff_max_ms, rng)
        self._was_up = False
        self._is_reloading = False
        self._is_leaving = False
        self._told_reason = ""

    def of(self, _key: bytes) -> Self:
        """One server has every key (endpoint.Router)."""
        return self

    def publish(self, channel: bytes, message: bytes) -> None:
        """Fire and forget; dropped while not connected."""
        self.post(b"PUBLISH", channel, message)

    def evaluate(
        self, script: Script, keys: Sequence[Argument], args: Iterable[Argument], *, repeats: bool
    ) -> "asyncio.Future[Reply]":
        """EVALSHA of one of `scripts`. When the server has lost them all are loaded again, once, and:

        `repeats`: this call is repeated, once, by itself; calls queued after it may overtake it (reads, claims).
        Otherwise ReplyError with code NOSCRIPT and outcome_unknown False; the scripts are loaded before anything that
        is queued from then on, so a retry in order succeeds (appends).
        """
        packed = script.pack(keys, args)
        if not repeats:
            return self.send(packed)
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._queue(packed, Repeat(future, lambda waiting: self._queue(packed, waiting)))
        return future

    # ---- the connection's life ----

    async def run(self) -> None:
        """Connect, watch, reconnect with full jitter, for ever. Its cancellation closes the client for good."""
        try:
            while not self._is_leaving:
                await self._live_once()
                if not self._is_leaving:
                    await self._primary.pause(self._backoff.delay_seconds())
        finally:
            was_up = self.is_up
            self._close()
            if was_up:
                self._on_state(False, "closed")

    async def _live_once(self) -> None:
        connection: Connection | None = None
        try:
            place = await self._primary.locate(self._settings.connect_timeout_seconds)
            async with asyncio.timeout(self._settings.connect_timeout_seconds):
                self._attempt = connection = await open_socket(place.address, place.tls, self._make_connection)
                deadline = self._loop.time() + self._settings.connect_timeout_seconds
                server = await greet(connection, place.address, self._name, self._scripts, deadline)
            if not server.is_primary:
                raise StoreUnavailable("it is a replica", outcome_unknown=False)
            if self._is_leaving:
                return
            since = self._loop.time()
            self._take_up(connection, server.incarnation)
            reason = await self._watch(connection)
            self._take_down(reason)
            if self._loop.time() - since > self._settings.backoff_max_ms / 1000:
                self._backoff.reset()
        except (OSError, StoreUnavailable) as exc:  # TimeoutError is an OSError
            reason = self._primary.why(exc)
            if self.is_up:
                self._take_down(reason)
            else:
                self._tell_failure(reason)
        finally:
            self._attempt = None
            if connection is not None:
                connection.abort("closed")

    def moved(self, host: str, port: int) -> None:
        """The sentinels have made this server the primary: leave another one now, do not wait until it is noticed."""
        if not self._primary.moved(host, port):
            return
        self._backoff.reset()
        if self._attempt is not None:
            self._attempt.retire("another server is the primary now")

    def _make_connection(self) -> Connection:
        return Connection(on_error=self._on_error, on_writable=self._send_parked)

    def _take_up(self, connection: Connection, incarnation: str) -> None:
        if self._was_up:
            self._measures.redis_reconnects += 1
        self._was_up = True
        self._note_incarnation(incarnation)
        self._is_reloading = False
        self._told_reason = ""
        log.info("redis_connected", address=str(self._primary), name=self._name, incarnation=incarnation)
        self._attach(connection)
        self._on_state(True, "connected")

    def _note_incarnation(self, incarnation: str) -> None:
        if self.incarnation not in ("", incarnation):
            # What waits names the server of before. A promoted replica would find that name in the log's meta and open
            # no fork: lost writes would not be seen (design.md 4).
            self._fail_waiting(ANOTHER_SERVER)
        self.incarnation = incarnation

    def _take_down(self, reason: str) -> None:
        self._detach()
        log.warning("redis_lost", address=str(self._primary), name=self._name, reason=reason)
        self._on_state(False, reason)

    def _tell_failure(self, reason: str) -> None:
        """Once for each new reason, not for each attempt."""
        if reason != self._told_reason:
            self._told_reason = reason
            log.warning("redis_connect_failed", address=str(self._primary), name=self._name, reason=reason)

    async def _watch(self, connection: Connection) -> str:
        """Returns why the connection takes no more commands."""
        interval, patience = self._settings.ping_interval_seconds, self._settings.call_timeout_seconds
        while True:
            await asyncio.wait((connection.ended,), timeout=interval)
            if connection.ended.done():
                return connection.ended.result()
            asked_at = time.monotonic()  # uvloop's own clock counts whole milliseconds
            info = connection.ask(INFO, self._loop.time() + 2 * patience)
            if not await is_answered(connection, info, patience):
                connection.abort("health ping was not answered")
                return await connection.ended
            self._measures.redis_ping_seconds.observe(time.monotonic() - asked_at)
            if info.exception() is not None:
                continue
            server = parse_server(info.result())
            self._note_incarnation(server.incarnation)
            if not server.is_primary:
                connection.retire("it became a replica")

    def _on_error(self, error: ReplyError) -> None:
        self._measures.redis_errors[error.label] += 1
        if error.code == "NOSCRIPT" and not self._is_reloading and self._scripts:
            # Queued before anybody can hear of the error, so before every repetition.
            self._is_reloading = True
            loaded = [self.send(script.pack_load()) for script in self._scripts]
            loaded[-1].add_done_callback(self._on_reloaded)

    def _on_reloaded(self, _: "asyncio.Future[Reply]") -> None:
        self._is_reloading = False


__all__ = ["ANOTHER_SERVER", "Client", "StateListener"]
