"""The connection to one primary of a cluster: as to a single server, but an answer about one slot does not end it."""

import random
from collections.abc import Callable, Sequence
from typing import Final

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.client import Client
from gateway.adapters.resp.connection import Connection, Waiter
from gateway.adapters.resp.replies import ReplyError
from gateway.adapters.resp.scripts import Script
from gateway.adapters.resp.slots import Spot
from gateway.domain.measures import Measures
from gateway.settings.redis import RedisSettings

_OF_ONE_SLOT: Final = frozenset({"MOVED"})


class ClusterNode(Client):
    """`leave` when it has no slots any more; `run` ends then."""

    def __init__(
        self,
        spot: Spot,
        address: Address,
        settings: RedisSettings,
        *,
        rng: random.Random,
        measures: Measures,
        name: str,
        scripts: Sequence[Script],
        on_state: Callable[["ClusterNode", bool, str], None],
        on_reply_error: Callable[[ReplyError, Spot], None],
    ) -> None:
        super().__init__(
            address.at(*spot),
            settings,
            rng=rng,
            measures=measures,
            name=name,
            scripts=scripts,
            on_state=lambda is_up, reason: on_state(self, is_up, reason),
        )
        self.spot = spot
        self._on_reply_error = on_reply_error

    def give(self, packed: bytes, waiter: Waiter) -> None:
        """Queue one command for somebody who is told by `waiter`."""
        self._queue(packed, waiter)

    def give_asking(self, packed: bytes, waiter: Waiter) -> None:
        """The same for a key of a slot that is on its way to this server."""
        self._queue(_ASKING, None)
        self._queue(packed, waiter)

    @property
    def is_leaving(self) -> bool:
        return self._is_leaving

    def leave(self, reason: str) -> None:
        """Take no more commands; what was asked may still be answered for a moment, what waits fails."""
        self._is_leaving = True
        self._detach()
        self._fail_waiting(reason)
        self._primary.hurry()
        if self._attempt is not None:
            self._attempt.retire(reason)

    def _make_connection(self) -> Connection:
        return Connection(on_error=self._on_error, on_writable=self._send_parked, outlives=_OF_ONE_SLOT)

    def _on_error(self, error: ReplyError) -> None:
        self._on_reply_error(error, self.spot)
        super()._on_error(error)


_ASKING: Final = b"*1\r\n$6\r\nASKING\r\n"

__all__ = ["ClusterNode"]
