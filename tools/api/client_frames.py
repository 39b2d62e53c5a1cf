"""Control frames from clients: payloads as types, each with an example."""

from typing import Any

from msgspec import UNSET, UnsetType

from tools.api.frame_types import Frame, RunName, Seen


class Ping(Frame, tag="ping"):
    """Answered by `pong`. Liveness needs none of it: the gateway pings at the WebSocket level."""

    id: Any | UnsetType = UNSET
    t: Any | UnsetType = UNSET


class Ack(Frame, tag="ack"):
    """Everything up to seq was applied. Clients that connect with `ack=1` send it every 32 KiB or 250 ms."""

    seq: int


class Auth(Frame, tag="auth"):
    """A (new) token: as the first message, or before the old one ends."""

    token: str


class Interrupt(Frame, tag="interrupt"):
    """End this run. After `accepted` none of its text reaches this client; the producer learns what was seen."""

    run: RunName
    seen: Seen | UnsetType = UNSET
    id: Any | UnsetType = UNSET


class Pause(Frame, tag="pause"):
    """Send no more text on this connection; nothing is lost. Control still comes."""

    id: Any | UnsetType = UNSET


class Resume(Frame, tag="resume"):
    """Go on; what was written meanwhile comes first, merged."""

    id: Any | UnsetType = UNSET


class Cancel(Frame, tag="cancel"):
    """End this run for everybody; text written so far still comes."""

    run: RunName
    reason: str | UnsetType = UNSET
    id: Any | UnsetType = UNSET


class Answer(Frame, tag="answer"):
    """Answer an ask."""

    ask: str
    value: Any
    traceparent: str | UnsetType = UNSET
    id: Any | UnsetType = UNSET


CLIENT_CONTROLS: dict[type[Frame], Frame] = {
    Ping: Ping(id="p1"),
    Ack: Ack(seq=118),
    Auth: Auth(token="eyJhbGciOi..."),
    Interrupt: Interrupt(run="r7", seen=Seen(seq=118, at=512), id="c1"),
    Pause: Pause(id="c2"),
    Resume: Resume(id="c3"),
    Cancel: Cancel(run="r7", id="c4"),
    Answer: Answer(ask="a1", value="yes", id="c5"),
}

__all__ = ["CLIENT_CONTROLS"]
