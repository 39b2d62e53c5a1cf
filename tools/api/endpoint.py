"""One HTTP endpoint of the catalogue, and what every way to connect takes in its URL."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tools.api.bodies import Body


class Endpoint(NamedTuple):
    """`query`: parameter -> meaning. `answer`: an example of the answer with `status`."""

    method: str
    path: str
    summary: str
    scope: str
    body: type[Body] | None
    answer: Any
    query: Mapping[str, str] = MappingProxyType({})
    status: int = 200
    media_type: str = "application/json"


CONNECT = {
    "client": "id of the app instance",
    "cursor": "where to go on",
    "last_received_seq": "the same as a bare number",
    "from": "`live` or `start`, without a position",
    "ack": "`1`: the client acknowledges",
    "replaces": "a connection of the same client that this one takes over from",
    "heartbeat": "seconds between pings",
    "retry": "how often it was tried in a row",
    "rhythm": "`1`: tell how tokens come",
    "batch": "`1`: several messages may come in one frame, a JSON array; on a WebSocket only",
    "caps": "what the client takes beside text, e.g. `audio,video/vp8` (media.md); on a WebSocket only",
    "ticket": "one-use credentials",
    "token": "only with `server.query_token`",
}

__all__ = ["CONNECT", "Endpoint"]
