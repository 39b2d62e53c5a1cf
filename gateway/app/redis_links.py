"""The connections to Redis for one gateway: to one server, to the primary that sentinels name, or to a whole cluster.

Called by redis_side, which decides what they carry.
"""

import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from gateway.adapters.resp import (
    Address,
    Client,
    ClusterClient,
    ClusterMap,
    ClusterSubscription,
    Script,
    SentinelWatch,
    Subscription,
)
from gateway.domain.measures import Measures
from gateway.settings.redis import RedisSettings


def _nobody(_is_up: bool, _reason: str) -> None:
    return


class RedisLinks:
    """`client` for each one that is needed, then `bus`; `lives` is what to run for ever."""

    def __init__(self, settings: RedisSettings, measures: Measures, rng: random.Random) -> None:
        self.address = Address.of(settings)
        self._settings = settings
        self._measures = measures
        self._rng = rng
        self._map = ClusterMap(self.address, settings, rng=rng) if self.address.seeds else None
        self._clients: list[Client] = []
        self._subscription: Subscription | None = None
        self._lives: list[tuple[str, Coroutine[Any, Any, None]]] = []
        if self._map is not None:
            self._lives.append(("redis-cluster", self._map.run()))
        if self.address.sentinels is not None:
            watch = SentinelWatch(self.address, settings, rng=rng, on_primary=self._primary_moved)
            self._lives.append(("sentinel-watch", watch.run()))

    def client(
        self, name: str, scripts: Sequence[Script], on_state: Callable[[bool, str], None] = _nobody
    ) -> "Client | ClusterClient":
        """`name` without the product's."""
        full_name = f"relayrouter-{name}"
        made: Client | ClusterClient
        if self._map is not None:
            made = ClusterClient(
                self._map,
                self.address,
                self._settings,
                rng=self._rng,
                measures=self._measures,
                name=full_name,
                scripts=scripts,
                on_state=on_state,
            )
        else:
            made = Client(
                self.address,
                self._settings,
                rng=self._rng,
                measures=self._measures,
                name=full_name,
                scripts=scripts,
                on_state=on_state,
            )
            self._clients.append(made)
        self._lives.append((f"redis-{name}", made.run()))
        return made

    def bus(self, publisher: "Client | ClusterClient") -> Subscription:
        """Once; its owner runs it. `publisher` carries what is published."""
        if self._map is not None and isinstance(publisher, ClusterClient):
            return ClusterSubscription(
                self._map, self.address, publisher, self._settings, rng=self._rng, measures=self._measures
            )
        self._subscription = Subscription(
            self.address, publisher, self._settings, rng=self._rng, measures=self._measures
        )
        return self._subscription

    def lives(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Each with its name; once."""
        lives, self._lives = self._lives, []
        yield from lives

    def _primary_moved(self, host: str, port: int) -> None:
        for client in self._clients:
            client.moved(host, port)
        if self._subscription is not None:
            self._subscription.moved(host, port)


__all__ = ["RedisLinks"]
