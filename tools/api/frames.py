"""Every frame's payload as a type, with an example. Tests hold live traffic and the docs against these.

Fields may be added to the wire, so clients ignore what they do not know; here an unknown field is an error, so that
nothing reaches a client that the docs do not name.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Seq = Annotated[int, Meta(ge=1, le=2**53 - 1, description="Position in the session's log, from 1, +1 each.")]
Ms = Annotated[int, Meta(ge=0, description="Milliseconds.")]
At = Annotated[int, Meta(ge=0, description="UTF-8 byte offset of this text in its run's text (or thinking).")]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
RunName = Annotated[str, Meta(min_length=1, description="The run's id: one generation inside the session.")]
Position = Annotated[str, Meta(description="`<epoch>.<fork>.<seq>`; opaque to applications.")]


class Frame(Struct, forbid_unknown_fields=True, tag_field="kind", omit_defaults=True):
    """Base of all payloads."""


# ---- text: they have a seq and are in the log --------------------------------------------------------------------


class SegmentChoice(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How the run's text is cut; what is not named has its default."""

    mode: Literal["tokens", "sentence", "structure", "pattern", "raw"]
    tokens: int | UnsetType = UNSET
    max_delay_ms: int | UnsetType = UNSET
    max_bytes: int | UnsetType = UNSET
    first_immediately: bool | UnsetType = UNSET
    pattern: str | UnsetType = UNSET


class RunStart(Frame, tag="run_start"):
    """A run begins."""

    run: RunName
    dialect: Annotated[str | UnsetType, Meta(description="What the producer sends; `tokens`: one by one.")] = UNSET
    segment: SegmentChoice | UnsetType = UNSET


class Delta(Frame, tag="delta"):
    """A segment of the run's text. Text of all deltas and code blocks in order is the run's text."""

    run: RunName
    text: str
    at: At


class CodeBlock(Frame, tag="code_block"):
    """A segment of the run's text inside a code block (segment mode `structure`): its fences are part of the text."""

    run: RunName
    block: Annotated[int, Meta(description="Number of the block in the run.")]
    part: Annotated[int, Meta(description="Number of this part of the block.")]
    last: Annotated[bool, Meta(description="The block ends with this part.")]
    language: str | None
    text: str
    at: At


class Thinking(Frame, tag="thinking"):
    """A segment of the run's reasoning; has an `at` of its own. When a stretch of it ends: its duration."""

    run: RunName
    text: str
    at: At | UnsetType = UNSET
    duration_ms: Ms | UnsetType = UNSET
    done: bool | UnsetType = UNSET


class Tool(Frame, tag="tool"):
    """Tool calls as the provider sent them."""

    run: RunName
    data: Any


class Data(Frame, tag="data"):
    """Anything of the application's, or structured content of a provider that is neither text nor tool."""

    data: Any
    run: RunName | UnsetType = UNSET
    text: str | UnsetType = UNSET


class Seen(Struct, forbid_unknown_fields=True):
    """What is on screen: the last message applied, and the bytes of the run's text."""

    seq: int
    at: At


class TextDigest(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Counts of a whole text; null where it is not known to be whole (interrupted, abandoned, past its cap)."""

    bytes: int
    code_points: int | None
    sha256: Sha256 | None
    duration_ms: Ms | None | UnsetType = UNSET


class RunEnd(Frame, tag="run_end"):
    """The run has ended; none of its text follows. `sha256` is of the run's whole text, null when it is not whole."""

    run: RunName
    reason: Literal["complete", "incomplete", "failed", "cancelled", "interrupted", "abandoned"]
    bytes: int
    code_points: int | None
    sha256: Sha256 | None
    reasoning: TextDigest
    finish_reason: str | UnsetType = UNSET
    usage: Any | UnsetType = UNSET
    problem: Annotated[str | UnsetType, Meta(description="What went wrong, for a person.")] = UNSET
    replaced: Annotated[int | UnsetType, Meta(description="U+FFFD put in for bytes that were no UTF-8.")] = UNSET
    seen: Annotated[Seen | UnsetType, Meta(description="What the interrupting user had seen.")] = UNSET
    by: Annotated[str | UnsetType, Meta(description="The user that interrupted or cancelled.")] = UNSET
    why: Annotated[str | UnsetType, Meta(description="What a cancelling user said.")] = UNSET
    message: Annotated[str | UnsetType, Meta(description="What a cancelling producer said.")] = UNSET


class Cut(Frame, tag="cut"):
    """Only for the client that interrupted: messages first_seq to seq had text of the run and are not shown."""

    run: RunName


class Ask(Frame, tag="ask"):
    """The agent wants a decision."""

    ask: str
    message: str
    expiresAt: str  # noqa: N815  AG-UI's spelling
    run: RunName | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    options: Any | UnsetType = UNSET
    responseSchema: Any | UnsetType = UNSET  # noqa: N815  AG-UI's spelling
    toolCallId: str | UnsetType = UNSET  # noqa: N815  AG-UI's spelling
    metadata: Any | UnsetType = UNSET
    who: Any | UnsetType = UNSET


class AskResolved(Frame, tag="ask_resolved"):
    """An ask was answered, or expired, or was cancelled. The first valid answer wins."""

    ask: str
    status: Literal["answered", "expired", "cancelled"]
    run: RunName | UnsetType = UNSET
    value: Any | UnsetType = UNSET
    user: str | UnsetType = UNSET
    client: str | UnsetType = UNSET


class Echo(Frame, tag="echo"):
    """What a user sent, shown on the user's other devices."""

    client: str
    user: str
    input_seq: int
    payload: Any


class ProducerGap(Frame, tag="producer_gap"):
    """Messages of a producer are missing here: they never came (`missing`), or the server lost them (`lost_writes`)."""

    reason: Literal["missing", "lost_writes"]
    producer: str | UnsetType = UNSET
    first: int | UnsetType = UNSET
    last: int | UnsetType = UNSET


TEXT_FRAMES: dict[type[Frame], Frame] = {
    RunStart: RunStart(run="r7", dialect="openai", segment=SegmentChoice(mode="structure")),
    Thinking: Thinking(run="r7", text="The user wants ", at=0),
    Delta: Delta(run="r7", text="Hello, wörld. ", at=0),
    CodeBlock: CodeBlock(
        run="r7", block=1, part=1, last=True, language="python", text="```python\nprint(1)\n```\n", at=15
    ),
    Tool: Tool(run="r7", data={"id": "call_1", "name": "search", "arguments": '{"q":'}),
    Data: Data(data={"progress": 0.4}),
    RunEnd: RunEnd(
        run="r7",
        reason="complete",
        finish_reason="stop",
        usage={"input_tokens": 12, "output_tokens": 9},
        bytes=39,
        code_points=38,
        sha256="44ae9d9c9c9f9d0a77b5d7a5b8d5dcb8f8a1f5a7e2dcf4f0d3ec2f1b5a6c7d8e",
        reasoning=TextDigest(bytes=15, code_points=15, sha256="9a" * 32, duration_ms=830),
    ),
    Cut: Cut(run="r7"),
    Ask: Ask(ask="a1", message="Delete 3 files?", options=["yes", "no"], expiresAt="2026-11-30T12:00:00Z", run="r7"),
    AskResolved: AskResolved(ask="a1", status="answered", value="yes", user="u1", client="phone", run="r7"),
    Echo: Echo(client="phone", user="u1", input_seq=3, payload={"text": "And in Python?"}),
    ProducerGap: ProducerGap(producer="agent", first=18, last=19, reason="missing"),
}

# ---- control: from the gateway -----------------------------------------------------------------------------------


class Limits(Struct, forbid_unknown_fields=True):
    """What this gateway lets in and sends at once, in bytes."""

    message_bytes: int
    frame_bytes: int
    unacked_bytes: int


class Welcome(Frame, tag="welcome"):
    """First frame of a connection. `cursor`: the position from which the next frame follows."""

    protocol: int
    connection: str
    client: str
    gateway: str
    cursor: Position
    head: int
    resumed: Literal["full", "snapshot", "gap", "fresh"]
    input_seq: Annotated[int, Meta(description="The client's last accepted input; the next one has this + 1.")]
    heartbeat: float
    limits: Limits


class Gap(Frame, tag="gap"):
    """Messages first..last cannot be delivered. With `epoch_changed`: each retained run's length that still counts;
    cut your texts to it, and drop runs that are not named."""

    first: int
    last: int
    reason: Literal["evicted", "epoch_changed", "ahead", "unknown_session"]
    cursor: Position
    runs: dict[str, int] | UnsetType = UNSET


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
    prefer: str | None


class Superseded(Frame, tag="superseded"):
    """A newer connection of your client has taken over; close 4409 follows."""


class Expiring(Frame, tag="expiring"):
    """Your token ends soon: send `auth` with a new one."""

    after_ms: Ms


class Rhythm(Frame, tag="rhythm"):
    """How a run's tokens come; only with `rhythm=1`."""

    run: RunName
    tokens_per_s: float
    gap_ms: Ms


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
        cursor="k3v9x2m7qd.a81f3c0e.117",
        head=130,
        resumed="full",
        input_seq=2,
        heartbeat=20.0,
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
    Rhythm: Rhythm(run="r7", tokens_per_s=41.5, gap_ms=24),
    State: State(hook="title", data={"title": "Plans"}),
    Error: Error(
        code="conflict", message="input 3 was accepted with another body", retryable=False, what="input", seq=3
    ),
}

# ---- control: from clients ---------------------------------------------------------------------------------------


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


def envelope(frame: Frame, kind: str) -> dict[str, Any]:
    """The example as it goes over the wire."""
    payload = msgspec.to_builtins(frame)
    payload = {"kind": payload.pop("kind"), **payload}
    if kind == "from client":
        return {"type": "control", "payload": payload}
    head: dict[str, Any] = {"type": "text", "seq": 118} if kind == "text" else {"type": "control"}
    if isinstance(frame, Cut):
        head = {"type": "text", "first_seq": 118, "seq": 124}
    return {**head, "timestamp": 1_796_040_000_000, "session_id": "chat-42", "payload": payload}


def check_frame(frame: dict[str, Any]) -> None:
    """A frame from the gateway. Raises msgspec.ValidationError when the docs do not have it like this."""
    known = {"type", "seq", "first_seq", "timestamp", "session_id", "payload", "ext"}
    if unknown := frame.keys() - known:
        raise msgspec.ValidationError(f"envelope with {sorted(unknown)}")
    if frame["type"] == "control":
        types = tuple(SERVER_CONTROLS)
    else:
        types = tuple(TEXT_FRAMES)
        if frame["payload"]["kind"] not in {kind.__struct_config__.tag for kind in types}:
            return  # the application's own kind
    payload = {name: value for name, value in frame["payload"].items() if name != "late"}  # any text frame may have it
    msgspec.convert(payload, _union(types))


def _union(types: tuple[type[Frame], ...]) -> Any:
    union: Any = types[0]
    for other in types[1:]:
        union = union | other
    return union


__all__ = ["CLIENT_CONTROLS", "SERVER_CONTROLS", "TEXT_FRAMES", "Frame", "check_frame", "envelope"]
