"""What an application may plug in (A6): each protocol is one place in the stream. Plain classes, no base class needed.

A hook is made once per gateway: `factory(**options)`. It may raise: what happens then is `on_error` of its settings.
"""

from collections.abc import Awaitable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gateway.domain.wire.ids import ClientId, RunId, SessionId, Tenant, UserId
from gateway.ports.runs import Track


class RunContext(NamedTuple):
    """Whose text it is."""

    tenant: Tenant
    session: SessionId
    run: RunId
    track: Track


class TextFilter(Protocol):
    """One text of one run, before segmentation. The run's digest is of what comes out.

    Called for every piece of text, so it must be quick (microseconds) and never block.
    """

    @property
    def held(self) -> str:
        """Text that was fed and not given back yet: it goes on unfiltered should the filter fail. At most 256 bytes."""
        ...

    def feed(self, text: str) -> str: ...

    def flush(self) -> str:
        """The text ends or stands still here: what was held back."""
        ...

    def save(self) -> bytes:
        """At most 512 bytes from which another gateway's filter goes on: the state after everything fed so far."""
        ...


@runtime_checkable
class TextHook(Protocol):
    """Before segmentation, e.g. a word filter that also works when the word is split over chunks."""

    def open_filter(self, context: RunContext, state: bytes) -> TextFilter | None:
        """`state`: what `save` gave, or empty. None: this text is of no interest."""
        ...


class DeliveredMessage(NamedTuple):
    """A message on its way to a session's clients. `frame` is its finished JSON text frame."""

    tenant: Tenant
    session: SessionId
    seq: int
    frame: bytes


@runtime_checkable
class DeliveryHook(Protocol):
    """Before delivery, e.g. tagging: may add fields, not change text."""

    def fields(self, message: DeliveredMessage) -> Mapping[str, Any] | None:
        """They appear under `ext` of the envelope. None: nothing is added. Quick, never blocks."""
        ...


class ResumedClient(NamedTuple):
    """A client that came back, or came for the first time (`resumed` is fresh)."""

    tenant: Tenant
    session: SessionId
    client: ClientId
    user: UserId
    resumed: str
    """full, snapshot, gap or fresh."""
    cursor: str


@runtime_checkable
class ResumeHook(Protocol):
    """On connect and reconnect, e.g. to bring application state along."""

    def on_resume(self, client: ResumedClient) -> Awaitable[Mapping[str, Any] | None]:
        """What is returned goes to this client as a control frame of kind `state`. May wait, within its deadline."""
        ...


class HookFailed(Exception):
    """A hook with `on_error: fail` failed. `name` is the one of the settings."""

    def __init__(self, name: str) -> None:
        super().__init__(f"hook `{name}` failed")
        self.name = name


__all__ = [
    "DeliveredMessage",
    "DeliveryHook",
    "HookFailed",
    "ResumeHook",
    "ResumedClient",
    "RunContext",
    "TextFilter",
    "TextHook",
]
