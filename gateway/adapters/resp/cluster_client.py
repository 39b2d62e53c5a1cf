"""The gateway's calls to a cluster: each to the primary that has its key's slot (endpoint.Router).

Owns one pipelined connection for each primary. Trouble with one of them is trouble of its slots only. Must never send
what names one server to another: it would not see that writes were lost (design.md 4).
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.client import ANOTHER_SERVER, StateListener
from gateway.adapters.resp.cluster_call import Call, ClusterEndpoint
from gateway.adapters.resp.cluster_map import ClusterMap
from gateway.adapters.resp.cluster_node import ClusterNode
from gateway.adapters.resp.commands import Argument
from gateway.adapters.resp.connection import fail
from gateway.adapters.resp.replies import Reply, ReplyError
from gateway.adapters.resp.scripts import Script
from gateway.adapters.resp.slots import Spot, parse_redirect, slot_of
from gateway.domain.measures import Measures
from gateway.ports import StoreUnavailable
from gateway.settings.redis import RedisSettings

PAUSE_SECONDS: Final = (0.01, 0.05)
"""Before a call is repeated for which the cluster is not ready (TRYAGAIN, CLUSTERDOWN, no server known)."""
MAX_PAUSING: Final = 4_096
"""Calls that pause so; beyond it they fail at once."""
MAX_REDIRECTS: Final = 5
"""That are followed at once; servers that disagree for longer are asked with pauses."""
ASKED_SECONDS: Final = 5.0
"""How long a key that was said to have been moved ahead of its slot is looked for there first."""
MAX_ASKED: Final = 4_096


class ClusterClient:
    """All calls as a Router's. `run` for ever; `map` is run by its owner."""

    def __init__(
        self,
        cluster: ClusterMap,
        address: Address,
        settings: RedisSettings,
        *,
        rng: random.Random,
        measures: Measures,
        name: str,
        scripts: Sequence[Script] = (),
        on_state: StateListener = lambda _is_up, _reason: None,
    ) -> None:
        """`on_state` hears of each server that is up again, and when none is."""
        self._map = cluster
        self._address = address
        self._settings = settings
        self._rng = rng
        self._measures = measures
        self._name = name
        self._scripts = tuple(scripts)
        self._on_state = on_state
        self._publish = b"SPUBLISH" if settings.shard_publish else b"PUBLISH"
        self._loop = asyncio.get_running_loop()
        self._nodes: dict[Spot, ClusterNode] = {}
        self._unstarted: list[ClusterNode] = []
        self._changed = asyncio.Event()
        self._asked: OrderedDict[bytes, tuple[Spot, float]] = OrderedDict()
        self._pausing = 0
        self._is_closed = False
        cluster.on_change(self._sync)
        self._sync()

    # ---- calls -------------------------------------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        return any(node.is_up for node in self._nodes.values())

    @property
    def waiting_bytes(self) -> int:
        """Of the server that is furthest behind."""
        return max((node.waiting_bytes for node in self._nodes.values()), default=0)

    @property
    def nodes(self) -> Sequence[ClusterNode]:
        """Of all primaries that are known."""
        return tuple(self._nodes.values())

    def of(self, key: bytes) -> ClusterEndpoint:
        return ClusterEndpoint(self, key, self._node_of(key)[0])

    def evaluate(
        self, script: Script, keys: Sequence[Argument], args: Iterable[Argument], *, repeats: bool
    ) -> "asyncio.Future[Reply]":
        return self.start(_as_key(keys[0]), script, keys, args, repeats=repeats)

    def call(self, *args: Argument) -> "asyncio.Future[Reply]":
        """The key is the first argument; redirections are followed."""
        return self.start(_as_key(args[1]), None, (), args, repeats=True)

    def publish(self, channel: bytes, message: bytes) -> None:
        """PUBLISH reaches all servers, whoever is told; the channel decides, so that its messages keep their order.

        While that server is away another one is told: its trouble is that of its slots only, and media has no log.
        """
        node = self._node_of(channel)[0]
        if (node is None or not node.is_up) and not self._settings.shard_publish:
            node = next((other for _, other in sorted(self._nodes.items()) if other.is_up), None)
        if node is not None:
            node.post(self._publish, channel, message)

    def start(
        self,
        key: bytes,
        script: Script | None,
        keys: Sequence[Argument],
        args: Iterable[Argument],
        *,
        repeats: bool,
    ) -> "asyncio.Future[Reply]":
        deadline = self._loop.time() + self._settings.call_timeout_seconds
        call = Call(self, key, script, keys, args, repeats=repeats, deadline=deadline)
        self._send(call)
        return call.future

    # ---- where a call goes ---------------------------------------------------------------------------------------

    def _node_of(self, key: bytes) -> tuple[ClusterNode | None, bool]:
        """And whether it must be told that the key's slot is on its way to it."""
        if self._asked:
            found = self._asked.get(_tag(key))
            if found is not None:
                spot, until = found
                if self._loop.time() < until and (node := self._nodes.get(spot)) is not None:
                    return node, True
                del self._asked[_tag(key)]
        spot_now = self._map.owner(slot_of(key))
        return (None if spot_now is None else self._nodes.get(spot_now)), False

    def _send(self, call: Call) -> None:
        node, is_asked = self._node_of(call.key)
        if node is None:
            self._map.hurry()
            if not self._pause(call):
                fail(call.future, StoreUnavailable("no server is known for this key", outcome_unknown=False))
            return
        call.node = node
        (node.give_asking if is_asked else node.give)(call.pack(node.incarnation), call)

    def _pause(self, call: Call) -> bool:
        """Send it again in a moment. False: its time is over, or too many wait."""
        if self._is_closed or self._pausing >= MAX_PAUSING or self._loop.time() >= call.deadline:
            return False
        self._pausing += 1
        self._loop.call_later(self._rng.uniform(*PAUSE_SECONDS), self._send_again, call)
        return True

    def _send_again(self, call: Call) -> None:
        self._pausing -= 1
        if not call.done():
            self._send(call)

    def follow(self, call: Call, error: StoreUnavailable) -> bool:
        """It was refused: True when it is on its way again, or will be in a moment."""
        code = error.code if isinstance(error, ReplyError) else ""
        self._learn(call, error, code)
        if error.outcome_unknown or not call.repeats or call.done() or self._is_closed:
            return False
        match code:
            case "MOVED" | "ASK":
                pass
            case "NOSCRIPT" if not call.redirects:
                pass  # loaded again by the node, before anything that is queued now
            case "TRYAGAIN" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING":
                return self._pause(call)
            case "" if self._was_left(call, error):
                return self._pause(call)
            case _:
                return False
        if self._loop.time() >= call.deadline:
            return False
        call.redirects += 1
        if call.redirects > MAX_REDIRECTS:
            return self._pause(call)
        self._send(call)
        return True

    def _was_left(self, call: Call, error: StoreUnavailable) -> bool:
        """It was not sent, because its server has no slots any more, not this one, or is another one now."""
        node = call.node
        if node is None or error.reason == ANOTHER_SERVER:
            return True
        return node.is_leaving or self._node_of(call.key)[0] is not node

    def _learn(self, call: Call, error: StoreUnavailable, code: str) -> None:
        """MOVED has been heard by the map already."""
        if code == "ASK" and call.node is not None and (found := parse_redirect(error.reason, call.node.spot)):
            self._take(found[1])
            self._asked[_tag(call.key)] = (found[1], self._loop.time() + ASKED_SECONDS)
            if len(self._asked) > MAX_ASKED:
                self._asked.popitem(last=False)
        elif code == "MOVED" and self._asked:
            self._asked.pop(_tag(call.key), None)

    # ---- the servers ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """A connection to each primary, for ever. Its cancellation closes them for good."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    starting, self._unstarted = self._unstarted, []
                    for node in starting:
                        group.create_task(node.run())
                    await self._changed.wait()
                    self._changed.clear()
        finally:
            self._is_closed = True

    def _sync(self) -> None:
        """Have exactly the primaries, and those that keys are on their way to."""
        now = self._loop.time()
        wanted = self._map.primaries | {spot for spot, until in self._asked.values() if now < until}
        for spot in wanted:
            self._take(spot)
        for spot in self._nodes.keys() - wanted:
            node = self._nodes.pop(spot)
            self._map.trouble.discard(node)
            node.leave("it has no slots any more")

    def _take(self, spot: Spot) -> None:
        if spot in self._nodes:
            return
        node = ClusterNode(
            spot,
            self._address,
            self._settings,
            rng=self._rng,
            measures=self._measures,
            name=self._name,
            scripts=self._scripts,
            on_state=self._node_state,
            on_reply_error=self._map.heard,
        )
        self._nodes[spot] = node
        self._unstarted.append(node)
        self._map.trouble.add(node)
        self._changed.set()

    def _node_state(self, node: ClusterNode, is_up: bool, reason: str) -> None:
        if is_up:
            self._map.trouble.discard(node)
            self._on_state(True, reason)
            return
        if not node.is_leaving:
            self._map.trouble.add(node)
            self._map.hurry()
        if not self.is_up:
            self._on_state(False, reason)


def _as_key(key: Argument) -> bytes:
    return key if isinstance(key, bytes) else str(key).encode()


def _tag(key: bytes) -> bytes:
    """What decides its slot."""
    start = key.find(b"{")
    end = key.find(b"}", start + 1) if start >= 0 else -1
    return key[start + 1 : end] if end > start + 1 else key


__all__ = ["ClusterClient"]
