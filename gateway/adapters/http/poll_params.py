"""What `GET .../messages` takes, and the one body of its answers: history and long poll look alike (protocol.md 2)."""

import re
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from gateway.adapters.http.admission import Admission
from gateway.adapters.http.connect_params import Params, QueryReader, count_between
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.frames import encode_json

MAX_LIMIT: Final = 1_000
DEFAULT_LIMIT: Final = 200
MAX_WAIT_SECONDS: Final = 55.0
"""Below the 60 s after which common proxies give up on a request."""
_SECONDS: Final = re.compile(r"[0-9]{1,2}(\.[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class MessagesParams:
    connect: Params
    has_client: bool
    limit: int
    wait_seconds: float
    """0: history."""


def read_messages_params(admission: Admission, request: web.Request) -> MessagesParams:
    """Raises RelayError BAD_REQUEST for all that is wrong."""
    reader = QueryReader(request.query)
    limit = reader.read("limit", count_between(1, MAX_LIMIT))
    wait_seconds = reader.read("wait", _wait) or 0.0
    connect = admission.read(
        request,
        reader,
        channel=Channel.POLL,
        needs_client=wait_seconds > 0,
        cursor_names=("since", "cursor"),
    )
    return MessagesParams(connect, "client" in request.query, limit or DEFAULT_LIMIT, wait_seconds)


def messages_body(
    frames: "list[bytes] | tuple[bytes, ...]",
    *,
    connection: str | None,
    cursor: str | None,
    head: int,
    has_more: bool,
    close: tuple[int, str] | None,
) -> bytes:
    """`frames` are JSON already."""
    rest = {
        "cursor": cursor,
        "head": head,
        "more": has_more,
        "close": None if close is None else {"code": int(close[0]), "reason": close[1]},
    }
    return b'{"connection":%b,"frames":[%b],%b' % (encode_json(connection), b",".join(frames), encode_json(rest)[1:])


def _wait(value: str) -> float:
    if _SECONDS.fullmatch(value) is None or float(value) > MAX_WAIT_SECONDS:
        raise ValueError(f"must be a number of seconds from 0 to {MAX_WAIT_SECONDS:g}")
    return float(value)


__all__ = ["MAX_LIMIT", "MAX_WAIT_SECONDS", "MessagesParams", "messages_body", "read_messages_params"]
