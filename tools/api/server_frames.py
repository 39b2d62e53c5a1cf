"""Control frames from the gateway: payloads as types, each with an example."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tools.api.frame_types import At, Frame, Ms, Position, RunName, Seq


class Limits(Struct, forbid_unknown_fields=True):
    """What this gateway lets in and sends at once, in bytes."""

    message_bytes: int
    frame_bytes: int
    unacked_bytes: int


class Preferred(Struct):
    """By which channel the operator prefers text to go, what comes next, and after how many attempts."""

    channel: Literal["ws", "sse", "http"]
    fallback: Literal["sse", "http"] | None
    attempts: int


class Welcome(Frame, tag="welcome"):
    """First frame of a connection. `cursor`: the position from which the next frame follows."""

    protocol: int
    connection: str
    client: str
    gateway: str
    prefer: Annotated[
        str | None, Meta(description="The gateway where the session's clients meet; any other serves it, too.")
    ]
    cursor: Position
    head: int
    resumed: Literal["full", "snapshot", "gap", "fresh"]
    input_seq: Annotated[int, Meta(description="The client's last accepted input; the next one has this + 1.")]
    heartbeat: float
    capabilities: Annotated[
        list[str], Meta(description="What you get beside single frames of text: of `caps` what is known, and `batch`.")
    ]
    limits: Limits
    channels: Annotated[
        dict[str, Preferred] | UnsetType,
        Meta(description="For user_text and model_text, when the route table differs from the shipped one."),
    ] = UNSET


class Gap(Frame, tag="gap"):
    """Messages first..last cannot be delivered. With `epoch_changed`: each retained run's length that still counts, of
    its text (`runs`) and its thinking (`thinking`: none where it is not named); cut yours to it, and drop runs that
    `runs` does not name."""

    first: int
    last: int
    reason: Literal["evicted", "epoch_changed", "ahead", "unknown_session"]
    cursor: Position
    runs: dict[str, int] | UnsetType = UNSET
    thinking: dict[str, int] | UnsetType = UNSET


class Forked(Frame, tag="forked"):
    """The log goes on from another incarnation of the server, and nothing that you have was lost."""

    cursor: Position
    base: int


class Snapshot(Frame, tag="snapshot"):
    """A run's text rebuilt, in parts; `at` 0 begins it anew, unless `cut`. The last frame of all names your position
    (`cursor`); one without `run` does nothing else."""

    run: RunName | UnsetType = UNSET
    track: Literal["text", "thinking"] | UnsetType = UNSET
    at: At | UnsetType = UNSET
    text: str | UnsetType = UNSET
    last: Annotated[bool | UnsetType, Meta(description="The last part of this text.")] = UNSET
    start: Annotated[Any | UnsetType, Meta(description="The run's run_start payload, with its first part.")] = UNSET
    open: bool | UnsetType = UNSET
    end: Annotated[Any | UnsetType, Meta(description="The run's run_end payload, with its last part.")] = UNSET
    partial: Annotated[bool | UnsetType, Meta(description="The kept text ends before the run's text does.")] = UNSET
    bytes: Annotated[int | UnsetType, Meta(description="With `partial`: of the whole text.")] = UNSET
    cut: Annotated[bool | UnsetType, Meta(description="You interrupted the run: the rest is not shown.")] = UNSET
    cursor: Position | UnsetType = UNSET


class Pong(Frame, tag="pong"):
    """Answer to `ping`; echoes `id` and `t`."""

    id: Any | UnsetType = UNSET
    t: Any | UnsetType = UNSET


class Accepted(Frame, tag="accepted"):
    """An input is durable, or a control took effect."""

    what: Literal["input", "interrupt", "pause", "resume", "cancel", "answer"]
    id: Any | UnsetType = UNSET
    t: Any | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    input_seq: int | UnsetType = UNSET
    run: RunName | UnsetType = UNSET
    ask: str | UnsetType = UNSET
    ended: Annotated[bool | UnsetType, Meta(description="The run had ended before.")] = UNSET
    end_seq: int | UnsetType = UNSET
    repeat: bool | UnsetType = UNSET
    winner: Annotated[bool | UnsetType, Meta(description="False: somebody answered first.")] = UNSET
    status: str | UnsetType = UNSET
    resolution: Annotated[Any | UnsetType, Meta(description="The `ask_resolved` payload that counts.")] = UNSET


class AskOpen(Frame, tag="ask_open"):
    """An ask is open: announced at once, ahead of any backlog; its `ask` frame comes in order."""

    seq: Seq
    ask: Any


class ReconnectLater(Frame, tag="reconnect_later"):
    """This gateway is about to stop: come back after so long; the socket is closed with 1012 later."""

    after_ms: Ms
    reason: str
    prefer: Annotated[str | None, Meta(description="The gateway that had better be asked, where one can choose.")]


class Superseded(Frame, tag="superseded"):
    """A newer connection of your client has taken over; close 4409 follows."""


class Expiring(Frame, tag="expiring"):
    """Your token ends soon: send `auth` with a new one."""

    after_ms: Ms


class MediaDropped(Frame, tag="media_dropped"):
    """Media frames that were not sent to you, since the last time; at most once a second (media.md)."""

    count: int
    audio: int
    video: int
    audio_only: Annotated[bool, Meta(description="You get audio only for now.")]
    upload: Annotated[int | UnsetType, Meta(description="Frames of your own that were not taken.")] = UNSET


class Rhythm(Frame, tag="rhythm"):
    """How a run's tokens come; only with `rhythm=1`."""

    run: RunName
    tokens_per_s: float
    gap_ms: Ms


class Quality(Frame, tag="quality"):
    """How good your connection is, when that changes (it begins `good`). While it is `poor` its text comes merged, at
    most four frames a second for a run."""

    level: Literal["good", "fair", "poor"]
    score: Annotated[float, Meta(description="From 0 to 1, perfect; about a half where `poor` begins.")]
    rtt_ms: Annotated[Ms | UnsetType, Meta(description="Smoothed round trip, where one was measured.")] = UNSET


class State(Frame, tag="state"):
    """What a resume hook of the application brings along."""

    hook: str
    data: Any


class Error(Frame, tag="error"):
    """A message of yours was refused, or the connection is about to be closed for what `code` says."""

    code: str
    message: str
    retryable: bool
    after_ms: Ms | UnsetType = UNSET
    what: Annotated[str | UnsetType, Meta(description="The control that was refused, or `input`.")] = UNSET
    id: Any | UnsetType = UNSET
    t: Any | UnsetType = UNSET
    seq: Any | UnsetType = UNSET
    expected: int | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    problem: str | UnsetType = UNSET


SERVER_CONTROLS: dict[type[Frame], Frame] = {
    Welcome: Welcome(
        protocol=1,
        connection="9f2c6e0b7d41a8c35e90f1b2",
        client="phone",
        gateway="gw-0-3f9a1c77e2b05d84",
        prefer="gw-0-3f9a1c77e2b05d84",
        cursor="k3v9x2m7qd.a81f3c0e.117",
        head=130,
        resumed="full",
        input_seq=2,
        heartbeat=20.0,
        capabilities=["audio", "video/vp8"],
        limits=Limits(message_bytes=65536, frame_bytes=16384, unacked_bytes=131072),
    ),
    Gap: Gap(first=1, last=41, reason="evicted", cursor="k3v9x2m7qd.a81f3c0e.41"),
    Forked: Forked(cursor="k3v9x2m7qd.77b1d20c.117", base=130),
    Snapshot: Snapshot(
        run="r7",
        track="text",
        at=0,
        text="Hello, wörld. ",
        last=True,
        start={"kind": "run_start", "run": "r7"},
        open=True,
        cursor="k3v9x2m7qd.a81f3c0e.90",
    ),
    Pong: Pong(id="p1"),
    Accepted: Accepted(what="interrupt", run="r7", id="c1", end_seq=131),
    AskOpen: AskOpen(
        seq=129, ask={"kind": "ask", "ask": "a1", "message": "Delete 3 files?", "expiresAt": "2026-11-30T12:00:00Z"}
    ),
    ReconnectLater: ReconnectLater(after_ms=4200, reason="drain", prefer=None),
    Superseded: Superseded(),
    Expiring: Expiring(after_ms=30000),
    MediaDropped: MediaDropped(count=12, audio=0, video=12, audio_only=True),
    Rhythm: Rhythm(run="r7", tokens_per_s=41.5, gap_ms=24),
    Quality: Quality(level="poor", score=0.36, rtt_ms=1070),
    State: State(hook="title", data={"title": "Plans"}),
    Error: Error(
        code="conflict", message="input 3 was accepted with another body", retryable=False, what="input", seq=3
    ),
}

__all__ = ["SERVER_CONTROLS"]
