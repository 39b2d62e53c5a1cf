"""What callers of scripts see of one server (client) or of a cluster (cluster_client): both are a Router."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from gateway.adapters.resp.commands import Argument
from gateway.adapters.resp.replies import Reply
from gateway.adapters.resp.scripts import Script


class Endpoint(Protocol):
    """The server of one key, for one attempt: ask the router anew for the next one."""

    incarnation: str
    """What a script that names its server must say. Set it when the server says that it is another one."""

    def evaluate(
        self, script: Script, keys: Sequence[Argument], args: Iterable[Argument], *, repeats: bool
    ) -> "asyncio.Future[Reply]":
        """See client.Client."""
        ...

    def call(self, *args: Argument) -> "asyncio.Future[Reply]":
        """One command on this very server, behind what was queued for it before."""
        ...


class Router(Protocol):
    """Every call goes to the server that has its key: the first of `keys`, or the first argument behind the command."""

    @property
    def is_up(self) -> bool:
        """Connected to a primary that takes commands (in a cluster: to one of them)."""
        ...

    @property
    def waiting_bytes(self) -> int:
        """Not taken by the kernel yet (in a cluster: of the server where most waits)."""
        ...

    def of(self, key: bytes) -> Endpoint: ...

    def evaluate(
        self, script: Script, keys: Sequence[Argument], args: Iterable[Argument], *, repeats: bool
    ) -> "asyncio.Future[Reply]":
        """For scripts that do not name their server."""
        ...

    def call(self, *args: Argument) -> "asyncio.Future[Reply]": ...

    def publish(self, channel: bytes, message: bytes) -> None:
        """Fire and forget, in order per channel, behind what was queued for the same server before."""
        ...


__all__ = ["Endpoint", "Router"]
