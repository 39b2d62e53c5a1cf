"""Error replies: which pass by themselves, and which tell that this connection is the wrong one to ask.

Pure. Called by the connection for every error reply.
"""

from typing import Any, Final, TypeAlias

from gateway.ports import StoreUnavailable

Reply: TypeAlias = Any
"""What hiredis makes of a RESP2 reply: bytes (of a status, too), int, None, or a list of replies and ReplyErrors."""

_REFUSED_BEFORE_EXECUTION: Final = frozenset({
    "ASK", "BUSY", "CLUSTERDOWN", "CROSSSLOT", "EXECABORT", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOAUTH",
    "NOPERM", "NOREPLICAS", "NOSCRIPT", "OOM", "READONLY", "TRYAGAIN", "UNBLOCKED", "WRONGPASS",
})  # fmt: skip

_DISCARDS_CONNECTION: Final = frozenset({"LOADING", "MASTERDOWN", "MOVED", "NOAUTH", "READONLY", "UNBLOCKED"})
"""This server is not, or no longer, the primary that takes our commands, or it forgot who we are (design.md 4)."""

_RAISED_INSIDE_SCRIPT: Final = "@user_script"
"""The server appends the place in the script: what the script did before it stays done."""


class ReplyError(StoreUnavailable):
    """The server answered with an error. `code` is its first word, e.g. `NOSCRIPT` or `ERR`.

    `outcome_unknown` is False only where the server refuses before it executes anything.
    """

    def __init__(self, text: str) -> None:
        code = text.partition(" ")[0]
        was_refused = code in _REFUSED_BEFORE_EXECUTION and _RAISED_INSIDE_SCRIPT not in text
        super().__init__(text, outcome_unknown=not was_refused)
        self.code = code

    @property
    def discards_connection(self) -> bool:
        return self.code in _DISCARDS_CONNECTION

    @property
    def label(self) -> str:
        """The code where it is one that we know, else `other`: fit to be a metric's label."""
        return self.code.lower() if self.code in _REFUSED_BEFORE_EXECUTION else "other"


__all__ = ["Reply", "ReplyError"]
