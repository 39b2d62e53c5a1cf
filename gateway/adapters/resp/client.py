"""The gateway's calls to Redis: one connection, commands of one loop turn in one write, replies in order.

Owns the outgoing queue, the deadlines and the reconnect loop. Must never let one caller's end disturb another's answer
(failure catalogue R25). Called by adapters.redis_store; `run` is started by the owner of tasks.
"""
# Interface as promised to adapters.redis_store; the implementation follows within the hour.

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.replies import Reply
from gateway.adapters.resp.scripts import Argument, Script
from gateway.domain.measures import Measures
from gateway.settings.redis import RedisSettings

StateListener = Callable[[bool, str], None]
"""`is_up` and why it changed."""


class Client:
    """Every failure is a StoreUnavailable in the future, never raised by the call itself.

    - Not connected: a call waits until `call_timeout_seconds`, then StoreUnavailable(outcome_unknown=False).
    - Sent, but lost or not answered in time: StoreUnavailable(outcome_unknown=True).
    - Error reply: ReplyError, which is a StoreUnavailable with the server's `code`.
    - More than `max_pending_bytes` unsent: StoreUnavailable(outcome_unknown=False) at once.
    Cancelling the future (or the task awaiting it) drops the answer, not the command.
    """

    def __init__(
        self,
        address: Address,
        settings: RedisSettings,
        *,
        rng: random.Random,
        measures: Measures,
        name: str,
        scripts: Sequence[Script] = (),
        on_state: StateListener | None = None,
    ) -> None:
        """`name` is what CLIENT LIST shows. `scripts` are loaded at each connect, before any call, and after NOSCRIPT."""
        raise NotImplementedError

    is_up: bool
    incarnation: str
    """`master_replid` of the server, read before a connection's first call and with each health ping; last known value
    while down; empty before the first connect."""

    async def run(self) -> None:
        """Connect, watch, reconnect with full jitter, for ever. Its cancellation closes the client for good."""
        raise NotImplementedError

    def call(self, *args: Argument) -> "asyncio.Future[Reply]":
        """Queue one command; it leaves at the end of this loop turn, after all that was queued before."""
        raise NotImplementedError

    def send(self, packed: bytes) -> "asyncio.Future[Reply]":
        """The same for one command that is packed already: the hot path."""
        raise NotImplementedError

    def post(self, *args: Argument) -> None:
        """Fire and forget: the reply is consumed, failures are silent. Dropped while not connected."""
        raise NotImplementedError

    def evaluate(
        self, script: Script, keys: Sequence[Argument], args: Iterable[Argument], *, repeats: bool
    ) -> "asyncio.Future[Reply]":
        """EVALSHA. When the server lost its scripts all are loaded again, once, and:

        `repeats`: this call is repeated once by itself, so calls queued after it may overtake it (reads, claims).
        Otherwise: ReplyError with code NOSCRIPT, outcome_unknown False; the scripts are loaded before anything that is
        queued after that, so an ordered retry succeeds (appends).
        """
        raise NotImplementedError

    def flush(self) -> None:
        """Send now what this loop turn has queued, instead of at its end."""
        raise NotImplementedError


__all__ = ["Client", "StateListener"]
