"""A Lua script and the name under which the server caches it."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gateway.adapters.resp.commands import Argument, pack


@dataclass(frozen=True, slots=True)
class Script:
    """`source` as it is sent to the server; the sha is computed once."""

    source: str = field(repr=False)
    name: str = ""
    names_server: bool = False
    """Its first argument is the incarnation of the server that is to run it."""
    publishes_later: bool = False
    """It answers [its answer, channel, message, ...]: whoever called it publishes these."""
    sha: bytes = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()
        object.__setattr__(self, "sha", digest.encode())

    def pack(self, keys: Sequence[Argument], args: Iterable[Argument]) -> bytes:
        """The whole EVALSHA command as bytes."""
        return pack((b"EVALSHA", self.sha, len(keys), *keys, *args))

    def pack_load(self) -> bytes:
        return pack((b"SCRIPT", b"LOAD", self.source))


__all__ = ["Script"]
