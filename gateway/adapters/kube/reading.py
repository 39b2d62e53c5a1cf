"""Reads what an API server sends: slices of endpoints, and the lines of a watch. Nothing here opens a connection."""

import json
from collections.abc import Iterator
from typing import Any, Final

from gateway.domain.pods.endpoints import PodEndpoint, Slice, Standing
from gateway.ports.pods import AwayReason, Bookmark, Expired, Listing, PodsAway, SliceChange, SlicePut, SliceRemoved

MAX_BYTES: Final = 16 * 1024 * 1024
"""Of a list, or of one line of a watch: some 30,000 endpoints."""
_DETAIL_CHARS: Final = 300

_REASONS: Final = {
    401: AwayReason.UNAUTHORIZED,
    403: AwayReason.FORBIDDEN,
    404: AwayReason.NOT_FOUND,
    408: AwayReason.BUSY,
    429: AwayReason.BUSY,
}


def failure(status: int, body: bytes, retry_after: str | None = None) -> PodsAway | Expired:
    """What a status other than success means. The server's own words go with it: they name what is forbidden."""
    if status == 410:
        return Expired()
    reason = _REASONS.get(status, AwayReason.BUSY if status >= 500 else AwayReason.MALFORMED)
    try:
        said = json.loads(body)["message"] or ""
    except (ValueError, KeyError, TypeError):
        said = ""
    seconds = float(retry_after) if retry_after is not None and retry_after.isdecimal() else 0.0
    return PodsAway(reason, f"{status} {said}"[:_DETAIL_CHARS].strip(), seconds)


def malformed(what: str) -> PodsAway:
    return PodsAway(AwayReason.MALFORMED, what)


def read_listing(body: bytes) -> Listing:
    """Raises PodsAway."""
    try:
        told = json.loads(body)
        return Listing(tuple(_slice(one) for one in told.get("items") or ()), str(told["metadata"]["resourceVersion"]))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise malformed("a list that is none") from exc


def read_change(line: bytes) -> SliceChange | None:
    """None: a kind of event that is not known yet. Raises PodsAway, Expired."""
    try:
        event = json.loads(line)
        kind, told = event["type"], event["object"]
        if kind == "ERROR":
            raise failure(int(told.get("code") or 500), json.dumps(told).encode())
        version = str(told["metadata"]["resourceVersion"])
        match kind:
            case "ADDED" | "MODIFIED":
                return SlicePut(_slice(told), version)
            case "DELETED":
                return SliceRemoved(str(told["metadata"]["name"]), version)
            case "BOOKMARK":
                return Bookmark(version)
            case _:
                return None
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise malformed("an event that is none") from exc


def _slice(told: dict[str, Any]) -> Slice:
    found = (_endpoint(one) for one in told.get("endpoints") or ())
    return Slice(str(told["metadata"]["name"]), tuple(one for one in found if one is not None))


def _endpoint(told: dict[str, Any]) -> PodEndpoint | None:
    """None: it is no pod's. A condition that is not there means: ready, and not terminating (discovery.k8s.io/v1)."""
    target = told.get("targetRef") or {}
    if target.get("kind") != "Pod" or not target.get("name"):
        return None
    conditions = told.get("conditions") or {}
    if conditions.get("terminating"):
        standing = Standing.TERMINATING
    else:
        standing = Standing.NOT_READY if conditions.get("ready") is False else Standing.READY
    return PodEndpoint(str(target["name"]), str(target.get("uid") or ""), standing)


class Lines:
    """Cuts what comes into lines. Holds at most `max_bytes` of one that is not whole."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._held: list[bytes] = []
        self._held_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Whole lines that are not empty. Raises PodsAway when one is too long."""
        *whole, rest = data.split(b"\n")
        for end in whole:
            line = b"".join((*self._held, end))
            self._held, self._held_bytes = [], 0
            if line.strip():
                yield line
        if rest:
            self._held.append(rest)
            self._held_bytes += len(rest)
        if self._held_bytes > self._max_bytes:
            raise malformed(f"a line of more than {self._max_bytes} bytes")


__all__ = ["MAX_BYTES", "Lines", "failure", "read_change", "read_listing"]
