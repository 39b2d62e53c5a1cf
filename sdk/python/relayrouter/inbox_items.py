"""What the inbox brings, typed by kind. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from relayrouter.errors import ProtocolError


class Desk(Protocol):
    """The inbox that an item came from."""

    async def ack(self, *items: "InboxItem") -> None: ...
    async def extend(self, item: "InboxItem") -> bool: ...
    async def bury(self, item: "InboxItem", reason: str) -> None: ...
    def hold(self, item: "InboxItem") -> None: ...
    def release(self, item: "InboxItem") -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class InboxItem:
    """What a client sent, or what happened to a run or an ask. `fields` is the item as the gateway made it.

    Its lease is renewed until the loop takes the next one. In a task of its own use `async with item`: the lease is
    renewed inside; leaving acknowledges it, but for an exception: then it comes again.
    """

    id: str
    kind: str
    session: str
    deliveries: int
    """1: for the first time, as far as leases tell."""
    timestamp: int
    """Unix ms."""
    client: str | None
    user: str | None
    run: str | None
    payload: Any
    fields: Mapping[str, Any] = field(repr=False)
    receipt: str = field(repr=False)
    _desk: Desk = field(repr=False)

    @property
    def once(self) -> tuple[str, Any]:
        """The same for repeats only: an id may be given again when an ask's or a client's name begins anew."""
        return self.id, self.fields.get("timestamp")

    async def __aenter__(self) -> Self:
        self._desk.hold(self)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._desk.release(self)
        if exc is None:
            await self._desk.ack(self)

    async def ack(self) -> None:
        """Done: it does not come again. Repeated until a gateway has heard it. Raises RelayError."""
        await self._desk.ack(self)

    async def extend(self) -> bool:
        """The lease begins anew. False: it had ended, and the item may be somebody else's by now."""
        return await self._desk.extend(self)

    async def bury(self, reason: str) -> None:
        """Nobody can do it: to the dead letters."""
        await self._desk.bury(self, reason)


@dataclass(frozen=True, slots=True, eq=False)
class InputItem(InboxItem):
    """A user sent `payload`."""

    @property
    def text(self) -> str:
        """The payload's `text`; empty when it has none."""
        text = self.payload.get("text") if isinstance(self.payload, dict) else None
        return text if isinstance(text, str) else ""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerItem(InboxItem):
    """An ask was answered, or nobody answered in time."""

    @property
    def ask(self) -> str:
        return str(self.fields.get("ask"))

    @property
    def is_answered(self) -> bool:
        """False: it expired."""
        return self.kind == "answer"

    @property
    def value(self) -> Any:
        return self.payload.get("value") if isinstance(self.payload, dict) else None


@dataclass(frozen=True, slots=True, eq=False)
class RunItem(InboxItem):
    """A client ended `run` (interrupt, cancel), or its producer fell silent (abandoned)."""

    @property
    def reason(self) -> str:
        """interrupt, cancel or abandoned."""
        return self.kind

    @property
    def seen(self) -> Mapping[str, int] | None:
        """What the user had seen: `seq`, and `at` bytes of the run's text."""
        seen = self.payload.get("seen") if isinstance(self.payload, dict) else None
        return seen if isinstance(seen, dict) else None


@dataclass(frozen=True, slots=True, eq=False)
class ViewersItem(InboxItem):
    """Nobody has been watching `run` for the grace that it asked for."""


_KINDS: dict[str, type[InboxItem]] = {
    "input": InputItem,
    "answer": AnswerItem,
    "expired": AnswerItem,
    "interrupt": RunItem,
    "cancel": RunItem,
    "abandoned": RunItem,
    "viewers": ViewersItem,
}


def read_item(taken: Any, desk: Desk) -> InboxItem:
    """Of a `take`. Kinds of a later version are plain InboxItems. Raises ProtocolError."""
    try:
        fields, receipt, deliveries = taken["item"], taken["receipt"], taken["deliveries"]
        ident, kind, session = fields["id"], fields["kind"], fields["session"]
    except (KeyError, TypeError) as exc:
        raise ProtocolError("an inbox item of another shape than expected") from exc
    make = _KINDS.get(kind, InboxItem)
    return make(
        id=ident,
        kind=kind,
        session=session,
        deliveries=deliveries,
        timestamp=fields.get("timestamp") or 0,
        client=fields.get("client"),
        user=fields.get("user"),
        run=fields.get("run"),
        payload=fields.get("payload"),
        fields=fields,
        receipt=receipt,
        _desk=desk,
    )


__all__ = ["AnswerItem", "Desk", "InboxItem", "InputItem", "RunItem", "ViewersItem", "read_item"]
