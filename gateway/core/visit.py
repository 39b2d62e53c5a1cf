"""One client's visit: what arrives from it, and what the border tells us of its socket.

Must never close for a message that is merely wrong: that is answered by an `error` frame. Called by the endpoint.
"""

import asyncio
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from gateway.core.connection import Connection
from gateway.core.qualities import note_round_trip
from gateway.domain.exchange.control import KINDS, echo_of
from gateway.domain.measures import Measures
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.cursor import MAX_SEQ
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.frames import error_payload
from gateway.domain.wire.ids import ConnectionId
from gateway.ports import Claimed, Clock, Link, StoreUnavailable

LEAVE_SECONDS: Final = 1.0
_decode = msgspec.json.Decoder().decode


class Control(Protocol):
    """core/control.py. Raises RelayError only."""

    async def by_socket(self, connection: Connection, kind: str, fields: dict[str, Any]) -> dict[str, Any]: ...


class Inputs(Protocol):
    """core/inputs.py. Raises RelayError only."""

    async def by_socket(self, connection: Connection, number: Any, payload: Any) -> dict[str, Any]: ...


class Media(Protocol):
    """core/media/intake.py. Raises RelayError only."""

    async def by_socket(self, connection: Connection, data: bytes) -> None: ...

    def on_pong(self, connection: Connection, payload: bytes) -> None: ...


class Speech(NamedTuple):
    """What a client can say beside acks and pings."""

    control: Control
    inputs: Inputs
    media: Media | None = None


class Host(Protocol):
    """What a visit needs of core.door."""

    def begin(self, connection: Connection, claimed: Claimed, bare_seq: int | None) -> None: ...

    async def renew(self, connection: Connection, token: str) -> None: ...

    def end(self, connection: Connection, reason: str) -> "asyncio.Task[None] | None": ...

    def may_answer(self, connection: Connection) -> bool: ...

    @property
    def speech(self) -> Speech: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def measures(self) -> Measures: ...


class Visit:
    """From the claim to the end of the socket. `begin` once, `end` once."""

    __slots__ = ("_bare_seq", "_claimed", "_connection", "_host")

    def __init__(self, host: Host, connection: Connection, claimed: Claimed, bare_seq: int | None) -> None:
        self._host = host
        self._connection = connection
        self._claimed: Claimed | None = claimed
        self._bare_seq = bare_seq

    @property
    def connection_id(self) -> ConnectionId:
        return self._connection.id

    @property
    def is_further_poll(self) -> bool:
        return is_further_poll(self._connection)

    @property
    def head(self) -> int:
        """Of the session's log, as far as anything told this gateway."""
        return self._connection.session.head_seen

    @property
    def is_ending(self) -> bool:
        """Nothing that arrives matters any more."""
        return self._connection.is_ending

    def begin(self, link: Link) -> None:
        """The upgrade is done: welcome, replay, live. Told to close meanwhile, it closes."""
        claimed, self._claimed = self._claimed, None
        if self._connection.open(link) and claimed is not None:
            self._host.begin(self._connection, claimed, self._bare_seq)

    def end(self, reason: str) -> None:
        """The socket has ended, or never came to be: the place in the hub and the route go."""
        self._host.end(self._connection, reason)

    async def leave(self, reason: str) -> None:
        """The same; returns when the route is gone, or after a second: then it goes a little later."""
        task = self._host.end(self._connection, reason)
        if task is not None:
            await asyncio.wait([task], timeout=LEAVE_SECONDS)

    def refuse(self, error: RelayError) -> None:
        """Say why, and close with the error's code."""
        self._connection.send_control(refusal_payload(error))
        self._connection.begin_close(error.rule.close_code, error.code.value)

    # ---- what arrives ----------------------------------------------------------------------------------------

    def heard(self) -> None:
        """A frame of any kind came."""
        self._connection.liveness.heard(self._host.clock())

    def on_pong(self, payload: bytes) -> None:
        now = self._host.clock()
        rtt_seconds = self._connection.liveness.pong(payload, now)
        if rtt_seconds is None and self._connection.media is not None and self._host.speech.media is not None:
            self._host.speech.media.on_pong(self._connection, payload)
        if rtt_seconds is not None:
            note_round_trip(self._connection, rtt_seconds, now)

    async def on_text(self, text: str) -> None:
        """One JSON message. A wrong one is answered, never closed for; a refused token closes."""
        about: dict[str, Any] = {}
        try:
            message = _read_message(text)
            if message["type"] == "text":
                about = {"what": "input"} | ({"seq": message.get("seq")} if "seq" in message else {})
                number, payload = message.get("seq"), message["payload"]
                self._answer(await self._host.speech.inputs.by_socket(self._connection, number, payload))
                return
            about = echo_of(message["payload"])
            kind, payload = _read_kind(message["payload"])
            match kind:
                case "ping":
                    self._answer({"kind": "pong", **echo_of(payload)})
                case "ack":
                    self._connection.on_ack(_read_seq(payload))
                case "auth":
                    await self._renew(_read_token(payload))
                case _ if kind in KINDS:
                    about = {"what": kind, **about}
                    self._answer(await self._host.speech.control.by_socket(self._connection, kind, payload))
                case _:
                    raise RelayError(ErrorCode.BAD_REQUEST, "unknown control kind")
        except RelayError as exc:
            self._answer(refusal_payload(exc) | about | _details(exc))

    async def on_binary(self, data: bytes) -> None:
        """One media frame (docs/media.md). A wrong one is answered, never closed for."""
        media = self._host.speech.media
        try:
            if media is None:
                raise RelayError(ErrorCode.UNSUPPORTED, "binary messages are not supported")
            await media.by_socket(self._connection, data)
        except RelayError as exc:
            self._answer(refusal_payload(exc) | {"what": "media"})

    async def _renew(self, token: str) -> None:
        try:
            await self._host.renew(self._connection, token)
        except RelayError as exc:
            self.refuse(exc)
        except StoreUnavailable:
            raise RelayError(ErrorCode.UNAVAILABLE, "Redis is not available") from None

    def _answer(self, payload: dict[str, Any]) -> None:
        """A client that asks and never reads gets no answers: they are bounded like everything else."""
        if self._host.may_answer(self._connection):
            self._connection.send_control(payload)


def is_further_poll(connection: Connection) -> bool:
    """It goes on where another long poll of the client ended, which was told what is told at the beginning."""
    return connection.channel is Channel.POLL and connection.replaces is not None


def read_auth(text: str) -> str:
    """The token of a first `auth` message. Raises RelayError BAD_REQUEST."""
    message = _read_message(text)
    kind, payload = _read_kind(message["payload"])
    if kind != "auth" or message["type"] != "control":
        raise RelayError(ErrorCode.UNAUTHENTICATED, "the first message must be `auth`")
    return _read_token(payload)


def _read_message(text: str) -> dict[str, Any]:
    """With `type` control or text, and a `payload`."""
    try:
        message = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise _wrong("the message is no JSON") from None
    if not isinstance(message, dict):
        raise _wrong("a message is a JSON object")
    match message.get("type"):
        case "control" | "text":
            pass
        case "audio" | "video" as what:
            raise RelayError(ErrorCode.UNSUPPORTED, f"messages of type `{what}` are not supported by this gateway")
        case _:
            raise _wrong("`type` must be control, text, audio or video")
    if not isinstance(message.get("payload"), dict):
        raise _wrong("`payload` must be an object")
    return message


def _read_kind(payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    kind = payload.get("kind", payload.get("action"))
    if not isinstance(kind, str):
        raise _wrong("`payload.kind` must be a text")
    return kind, payload


def _read_seq(payload: dict[str, Any]) -> int:
    seq = payload.get("seq")
    if isinstance(seq, bool) or not isinstance(seq, int) or not 0 <= seq <= MAX_SEQ:
        raise _wrong("`payload.seq` of an ack must be an integer from 0 to 2^53 - 1")
    return seq


def _read_token(payload: dict[str, Any]) -> str:
    token = payload.get("token")
    if not isinstance(token, str):
        raise _wrong("`payload.token` of auth must be a text")
    return token


def _details(error: RelayError) -> dict[str, Any]:
    """What of the details a client can act on."""
    return {name: error.details[name] for name in ("expected", "reason", "problem") if error.details.get(name)}


def _wrong(message: str) -> RelayError:
    return RelayError(ErrorCode.BAD_REQUEST, message)


def refusal_payload(error: RelayError) -> dict[str, Any]:
    """The `error` frame that says why."""
    return error_payload(error.code, error.message, retryable=error.rule.retryable, after_ms=error.after_ms)


__all__ = ["Host", "Speech", "Visit", "is_further_poll", "read_auth", "refusal_payload"]
