"""What a client asks for in its URL, on every channel: all is checked, one 400 names every bad or missing one (C10)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from multidict import MultiMapping

from gateway.domain.wire.capabilities import TEXT_ONLY, Capabilities
from gateway.domain.wire.connect import MAX_RETRY_COUNT, Channel, ConnectRequest
from gateway.domain.wire.cursor import Cursor, parse_seq
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, ConnectionId, SessionId, check_id

_T = TypeVar("_T")
_SECONDS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3})?")
_COUNT = re.compile(r"[0-9]{1,9}")
MAX_TICKET_BYTES: Final = 512
MAX_TOKEN_BYTES: Final = 8192


@dataclass(frozen=True, slots=True)
class Params:
    """The request, and the credentials that the URL carries."""

    request: ConnectRequest
    ticket: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


class QueryReader:
    """Reads parameters one by one and remembers what is wrong with which."""

    def __init__(self, query: MultiMapping[str]) -> None:
        self._query = query
        self.problems: dict[str, str] = {}

    def read(self, name: str, convert: Callable[[str], _T], *also: str) -> _T | None:
        """The value, or None when it is absent or bad. `also`: older names of it, used when `name` is absent."""
        for candidate in (name, *also):
            values = self._query.getall(candidate, ())
            if not values:
                continue
            if len(values) > 1:
                self.problems[candidate] = "is given more than once"
                return None
            return self.check(candidate, values[0], convert)
        return None

    def check(self, name: str, value: str, convert: Callable[[str], _T]) -> _T | None:
        try:
            return convert(value)
        except ValueError as exc:
            self.problems[name] = str(exc).removeprefix(f"{name} ")
        return None


def read_params(
    path_session: str | None,
    query: MultiMapping[str],
    *,
    heartbeat_seconds: tuple[float, float],
    takes_query_token: bool,
    fresh_client: Callable[[], ClientId],
) -> Params:
    """Of a WebSocket. Raises RelayError BAD_REQUEST with `details.parameters`: name -> what is wrong with it.

    `path_session` None: the form for plain clients, where the session is `sid` and a client needs no id.
    """
    return read_connect(
        QueryReader(query),
        path_session,
        heartbeat_seconds=heartbeat_seconds,
        takes_query_token=takes_query_token,
        fresh_client=fresh_client,
    )


def read_connect(
    reader: QueryReader,
    path_session: str | None,
    *,
    heartbeat_seconds: tuple[float, float],
    takes_query_token: bool,
    fresh_client: Callable[[], ClientId],
    needs_client: bool = True,
    channel: Channel = Channel.WEBSOCKET,
    cursor_names: tuple[str, ...] = ("cursor",),
) -> Params:
    """The same for any channel; whatever else `reader` found wrong is in the one answer.

    `cursor_names`: the first of these that is there says where to begin; none: the caller reads it.
    """
    if path_session is not None:
        session = reader.check("session", path_session, _id("session"))
        client = reader.read("client", _id("client"))
        needed = {"client": client} if needs_client else {}
        if client is None and not needs_client and "client" not in reader.problems:
            client = fresh_client()
    else:
        session = reader.read("sid", _id("sid"), "session_id")
        client = reader.read("client", _id("client"), "user_id")
        needed = {"sid": session}
        if client is None and not reader.problems.keys() & {"client", "user_id"}:
            client = fresh_client()
    cursor = reader.read(cursor_names[0], Cursor.parse, *cursor_names[1:]) if cursor_names else None
    last_received_seq = reader.read("last_received_seq", parse_seq)
    begins = reader.read("from", one_of("live", "start"))
    ack = reader.read("ack", one_of("0", "1"))
    rhythm = reader.read("rhythm", one_of("0", "1"))
    capabilities = reader.read("caps", Capabilities.parse) or TEXT_ONLY
    if reader.read("batch", one_of("0", "1")) == "1":
        capabilities = capabilities.with_batches()
    replaces = reader.read("replaces", _id("replaces"))
    heartbeat = reader.read("heartbeat", seconds_between(*heartbeat_seconds))
    retry_count = reader.read("retry", _retry_count)
    ticket = reader.read("ticket", _short_text(MAX_TICKET_BYTES))
    token = reader.read("token", _short_text(MAX_TOKEN_BYTES) if takes_query_token else _no_token)
    for name, value in needed.items():
        if value is None and name not in reader.problems:
            reader.problems.setdefault(name, "is missing")
    if reader.problems or session is None or client is None:
        raise _bad(reader.problems)
    request = ConnectRequest(
        session=SessionId(session),
        client=ClientId(client),
        cursor=cursor,
        last_received_seq=last_received_seq,
        from_start=begins == "start",
        is_acking=ack == "1" and channel is Channel.WEBSOCKET,
        replaces=None if replaces is None else ConnectionId(replaces),
        heartbeat_seconds=heartbeat,
        retry_count=retry_count or 0,
        wants_rhythm=rhythm == "1",
        # Binary frames are a WebSocket's, and an event is one message.
        capabilities=capabilities if channel is Channel.WEBSOCKET else TEXT_ONLY,
        channel=channel,
    )
    return Params(request, ticket, token)


def read_header(reader: QueryReader, name: str, values: Sequence[str], convert: Callable[[str], _T]) -> _T | None:
    """None when it is absent, empty, or bad: then `reader` has the problem."""
    if len(values) > 1:
        reader.problems[name] = "is given more than once"
        return None
    return reader.check(name, values[0], convert) if values and values[0] else None


def count_between(lowest: int, highest: int) -> Callable[[str], int]:
    def convert(value: str) -> int:
        if _COUNT.fullmatch(value) is None or not lowest <= int(value) <= highest:
            raise ValueError(f"must be an integer from {lowest} to {highest}")
        return int(value)

    return convert


def _bad(problems: dict[str, str]) -> RelayError:
    text = "; ".join(f"{name} {problem}" for name, problem in problems.items())
    details: dict[str, Any] = {"parameters": problems}
    return RelayError(ErrorCode.BAD_REQUEST, text, details)


def _id(name: str) -> Callable[[str], str]:
    return lambda value: check_id(value, name)


def one_of(*words: str) -> Callable[[str], str]:
    def convert(value: str) -> str:
        if value not in words:
            raise ValueError(f"must be {' or '.join(words)}")
        return value

    return convert


def seconds_between(lowest: float, highest: float) -> Callable[[str], float]:
    def convert(value: str) -> float:
        if _SECONDS.fullmatch(value) is None or not lowest <= float(value) <= highest:
            raise ValueError(f"must be a number of seconds from {lowest:g} to {highest:g}")
        return float(value)

    return convert


def _retry_count(value: str) -> int:
    return count_between(0, MAX_RETRY_COUNT)(value)


def _short_text(max_bytes: int) -> Callable[[str], str]:
    def convert(value: str) -> str:
        if not 1 <= len(value) <= max_bytes or not value.isascii():
            raise ValueError(f"must be 1 to {max_bytes} ASCII characters")
        return value

    return convert


def _no_token(value: str) -> str:  # noqa: ARG001  never looked at
    raise ValueError("is not accepted in the URL, where it ends up in logs; use a header, a subprotocol or a ticket")


__all__ = [
    "Params",
    "QueryReader",
    "count_between",
    "one_of",
    "read_connect",
    "read_header",
    "read_params",
    "seconds_between",
]
