"""Bodies of HTTP requests as types, for docs/openapi.yaml. Tests compare their fields with what the handlers decode."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType


class Body(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Base of request bodies."""


PushType = Annotated[
    Literal["text", "control", "post_processing"],
    Meta(description="text: to the log; control: to who is there; post_processing: to agents. One push has one type."),
]


class Message(Body):
    """One message; `payload.kind` says what it is."""

    payload: dict[str, Any]
    type: PushType = "text"
    expires_in: Annotated[float | UnsetType, Meta(description="Seconds for which it is kept for late clients.")] = UNSET


class Push(Body):
    """One `payload`, or a batch of `messages`: whole or not at all. producer, epoch and number go together."""

    payload: dict[str, Any] | UnsetType = UNSET
    messages: list[Message] | UnsetType = UNSET
    type: PushType = "text"
    expires_in: float | UnsetType = UNSET
    producer: str | UnsetType = UNSET
    epoch: int | UnsetType = UNSET
    number: int | UnsetType = UNSET
    owner: str | UnsetType = UNSET
    order: Annotated[
        Literal["contiguous", "reorder"] | UnsetType, Meta(description="What comes early waits for what is missing.")
    ] = UNSET


class RootPush(Body):
    """The short form: `content` becomes `text`, or `data` when it is no string; `type` its kind."""

    sessionId: str  # noqa: N815  the field's spelling
    content: Any
    type: str = "text"
    seq: int | UnsetType = UNSET
    producer: str | UnsetType = UNSET
    run: str | UnsetType = UNSET
    order: Literal["contiguous", "reorder"] = "reorder"
    expires_in: float | UnsetType = UNSET


class Register(Body):
    """A new epoch of a producer; it fences the older ones."""

    owner: str | UnsetType = UNSET


class Tokens(Body):
    """Exactly one of text, tokens and thinking. `offset`: bytes given before it, which makes a repeat harmless."""

    text: str | UnsetType = UNSET
    tokens: list[str] | UnsetType = UNSET
    thinking: str | UnsetType = UNSET
    offset: int | UnsetType = UNSET
    epoch: int | UnsetType = UNSET


class EndRun(Body):
    """How a run ends whose input did not say it. `message` becomes the end's `problem`."""

    reason: Literal["complete", "incomplete", "failed"] = "complete"
    usage: dict[str, Any] | UnsetType = UNSET
    message: str | UnsetType = UNSET


class CancelRun(Body):
    """End a run for everybody."""

    reason: str | UnsetType = UNSET


class KeepAlive(Body):
    """The writer's lease begins anew."""

    epoch: int


class Who(Body):
    """Who may answer; empty: every subscriber."""

    users: list[str] | UnsetType = UNSET
    clients: list[str] | UnsetType = UNSET


class OpenAsk(Body):
    """A question to the user: options, or a small JSON schema, or neither (any value)."""

    ask: str
    message: Annotated[str | UnsetType, Meta(description="Required, here or as `prompt`.")] = UNSET
    prompt: str | UnsetType = UNSET
    options: list[Any] | UnsetType = UNSET
    responseSchema: dict[str, Any] | UnsetType = UNSET  # noqa: N815  AG-UI's spelling
    schema: Annotated[dict[str, Any] | UnsetType, Meta(description="Short for `responseSchema`.")] = UNSET
    reason: str | UnsetType = UNSET
    toolCallId: str | UnsetType = UNSET  # noqa: N815  AG-UI's spelling
    metadata: dict[str, Any] | UnsetType = UNSET
    run: str | UnsetType = UNSET
    who: Who | UnsetType = UNSET
    expires_in: Annotated[float | UnsetType, Meta(description="Seconds.")] = UNSET
    owner: str | UnsetType = UNSET


class Input(Body):
    """What a user sends when the WebSocket is down; the same numbers, the same answer to a repeat."""

    client: str
    seq: int
    payload: dict[str, Any]


class SeenText(Body):
    """What is on screen: the last message applied, and the bytes of the run's text."""

    seq: int
    at: int


class Control(Body):
    """The same as the control frame. run: of interrupt and cancel; ask and value: of answer."""

    client: str
    kind: Literal["interrupt", "pause", "resume", "cancel", "answer"]
    run: str | UnsetType = UNSET
    seen: SeenText | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    ask: str | UnsetType = UNSET
    value: Any | UnsetType = UNSET
    id: Any | UnsetType = UNSET
    t: Any | UnsetType = UNSET
    traceparent: str | UnsetType = UNSET


class Take(Body):
    """Items that are yours for `lease_ms`; waits up to `wait` seconds for the first."""

    consumer: str
    max: int = 10
    lease_ms: int | UnsetType = UNSET
    wait: float = 0.0


class Receipts(Body):
    """Items by the `receipt` that `take` gave. `consumer`: required to extend; `reason`: for bury."""

    items: list[str]
    consumer: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class Redrive(Body):
    """Dead letters by their `entry`; without `items` all of them."""

    items: list[str] | UnsetType = UNSET


class TicketRequest(Body):
    """A ticket for one session, or for any that the token covers."""

    session: str | UnsetType = UNSET


class Revocation(Body):
    """Exactly one: tokens issued until now are refused, within five seconds everywhere."""

    user: str | UnsetType = UNSET
    session: str | UnsetType = UNSET
    token: str | UnsetType = UNSET


__all__ = [
    "Body",
    "CancelRun",
    "Control",
    "EndRun",
    "Input",
    "KeepAlive",
    "Message",
    "OpenAsk",
    "Push",
    "Receipts",
    "Redrive",
    "Register",
    "Revocation",
    "RootPush",
    "SeenText",
    "Take",
    "TicketRequest",
    "Tokens",
    "Who",
]
