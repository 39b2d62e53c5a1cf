"""One call in a cluster: to the server of its key, and after it when the key turns out to be elsewhere.

Followed here are refusals before execution, of calls that may be repeated; an append's caller hears of them and repeats
in order. Called by cluster_client.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gateway.adapters.resp.commands import Argument, pack
from gateway.adapters.resp.connection import Waiting, fail
from gateway.adapters.resp.replies import Reply
from gateway.adapters.resp.scripts import Script
from gateway.ports import StoreUnavailable

if TYPE_CHECKING:
    from gateway.adapters.resp.cluster_client import ClusterClient
    from gateway.adapters.resp.cluster_node import ClusterNode


class Call(Waiting):
    """What is asked, until `future` is done. `repeats`: it may be sent again where it was refused."""

    __slots__ = ("_args", "_client", "_keys", "_script", "deadline", "future", "key", "node", "redirects", "repeats")

    def __init__(
        self,
        client: "ClusterClient",
        key: bytes,
        script: Script | None,
        keys: Sequence[Argument],
        args: Iterable[Argument],
        *,
        repeats: bool,
        deadline: float,
    ) -> None:
        """Without `script` it is a command: `args`."""
        self.future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.key = key
        self.repeats = repeats
        self.deadline = deadline
        self.node: ClusterNode | None = None
        """Who was asked last."""
        self.redirects = 0
        self._client = client
        self._script = script
        self._keys = keys
        self._args = tuple(args)

    def pack(self, incarnation: str) -> bytes:
        """For a server of this incarnation."""
        script = self._script
        if script is None:
            return pack(self._args)
        if script.names_server:
            return script.pack(self._keys, (incarnation, *self._args[1:]))
        return script.pack(self._keys, self._args)

    # ---- what the connection does with it ----

    def done(self) -> bool:
        return self.future.done()

    def set_result(self, reply: Reply) -> None:
        script = self._script
        if script is not None and script.publishes_later and isinstance(reply, list):
            reply, *later = reply
            for place in range(0, len(later), 2):
                self._client.publish(later[place], later[place + 1])
        self.future.set_result(reply)

    def fail(self, error: StoreUnavailable) -> None:
        if not self._client.follow(self, error):
            fail(self.future, error)


class ClusterEndpoint:
    """The server that has a key now (endpoint.Endpoint); of a key whose server is not known it has no incarnation."""

    __slots__ = ("_client", "_key", "_node")

    def __init__(self, client: "ClusterClient", key: bytes, node: "ClusterNode | None") -> None:
        self._client = client
        self._key = key
        self._node = node

    @property
    def incarnation(self) -> str:
        return "" if self._node is None else self._node.incarnation

    @incarnation.setter
    def incarnation(self, value: str) -> None:
        if self._node is not None:
            self._node.incarnation = value

    def evaluate(
        self, script: Script, keys: Sequence[Argument], args: Iterable[Argument], *, repeats: bool
    ) -> "asyncio.Future[Reply]":
        return self._client.start(self._key, script, keys, args, repeats=repeats)

    def call(self, *args: Argument) -> "asyncio.Future[Reply]":
        if self._node is None:
            future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            fail(future, StoreUnavailable("no server is known for this key", outcome_unknown=False))
            return future
        return self._node.call(*args)


__all__ = ["Call", "ClusterEndpoint"]
