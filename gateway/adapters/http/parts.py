"""What the HTTP handlers call: the core as they see it. Composition passes it in."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from gateway.adapters.http.agent_parts import Asks, InboxDesk
from gateway.domain.access.principal import Principal
from gateway.domain.routing.table import MessageType
from gateway.domain.streams.pieces import EndReason
from gateway.domain.streams.run_options import StreamRequest, TokensRequest
from gateway.domain.streams.segment import SegmentOptions
from gateway.domain.wire.entry import Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, GatewayId, ProducerName, RunId, SessionId, SessionRef, UserId
from gateway.domain.wire.media import MediaFrame
from gateway.ports import Appended, Order, ProducerRef, Registered, RunInfo, SessionInfo
from gateway.settings import KeptSettings

_SEGMENTS = SegmentOptions()
_KEPT = KeptSettings()


class Ticket(Protocol):
    @property
    def ticket(self) -> str: ...

    @property
    def expires_in_seconds(self) -> float: ...


class Access(Protocol):
    """core/access.py. Everything raises RelayError, and StoreUnavailable when Redis had to be asked."""

    async def authenticate(self, token: str | None) -> Principal: ...

    async def publisher(self, principal: Principal, session: SessionId) -> SessionRef: ...

    async def member(self, principal: Principal, session: SessionId) -> SessionRef: ...

    async def info(self, principal: Principal, session: SessionId) -> SessionInfo: ...

    async def issue_ticket(self, principal: Principal, session: SessionId | None) -> Ticket: ...

    async def revoke(self, principal: Principal, what: str, ident: str) -> None: ...


class Ingest(Protocol):
    """core/ingest.py. Everything raises RelayError only."""

    async def append(
        self,
        session: SessionRef,
        items: tuple[Item, ...],
        *,
        producer: ProducerRef | None = None,
        first_number: int = 1,
        owner: UserId | None = None,
        idempotency_key: str | None = None,
        order: Order | None = None,
        kept_ms: int | None = None,
        traceparent: str | None = None,
    ) -> Appended: ...

    async def consume(
        self,
        session: SessionRef,
        count: int,
        producer: ProducerRef,
        first_number: int,
        code: ErrorCode,
        order: Order | None = None,
    ) -> None: ...

    async def register(self, session: SessionRef, name: ProducerName, owner: UserId | None) -> Registered: ...

    async def delete(self, session: SessionRef) -> bool: ...


class Sent(Protocol):
    @property
    def results(self) -> list[dict[str, Any]]: ...

    @property
    def is_live(self) -> bool: ...


class Intake(Protocol):
    """core/routing/intake.py. Raises RelayError only."""

    async def send(
        self,
        session: SessionRef,
        message_type: MessageType,
        items: tuple[Item, ...],
        *,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
    ) -> Sent: ...


class OpenIngest(Protocol):
    """core/runs/open_ingest.py."""

    def feed(self, data: bytes) -> None: ...

    @property
    def is_over(self) -> bool: ...

    @property
    def is_full(self) -> bool: ...

    async def room(self) -> None: ...

    def on_stop(self, told: Callable[[], None]) -> None: ...

    async def conclude(self) -> RelayError: ...

    async def break_off(self) -> None: ...

    async def finish(self) -> dict[str, Any]: ...


class Meter(Protocol):
    """core/quotas/meter.py."""

    @property
    def step_bytes(self) -> int: ...

    def read(self, size_bytes: int) -> None: ...

    @property
    def is_in_debt(self) -> bool: ...

    async def wait(self) -> None: ...


class Runs(Protocol):
    """core/runs/runs.py. Everything raises RelayError only."""

    async def begin(self, request: StreamRequest) -> Any: ...

    def meter(self, ref: SessionRef) -> Meter | None: ...

    def holding(self, ingest: Any, request: StreamRequest) -> AbstractContextManager[None]: ...

    async def attach(self, ref: SessionRef, run: RunId) -> dict[str, Any]: ...

    async def end(
        self, ref: SessionRef, run: RunId, reason: EndReason, usage: dict[str, Any] | None, problem: str | None
    ) -> dict[str, Any]: ...

    async def cancel(self, ref: SessionRef, run: RunId, by: str, note: str | None) -> dict[str, Any]: ...

    async def keep_alive(self, ref: SessionRef, run: RunId, epoch: int) -> dict[str, Any]: ...

    async def info(self, ref: SessionRef, run: RunId) -> RunInfo: ...

    async def list(self, ref: SessionRef) -> list[RunInfo]: ...


class Tokens(Protocol):
    """core/runs/tokens.py."""

    async def add(self, request: TokensRequest) -> dict[str, Any]: ...


class Control(Protocol):
    """core/control.py. Raises RelayError only."""

    async def by_http(
        self, session: SessionRef, client: ClientId, principal: Principal, kind: str, fields: dict[str, Any]
    ) -> dict[str, Any]: ...


class Inputs(Protocol):
    """core/inputs.py. Raises RelayError only."""

    async def by_http(
        self,
        session: SessionRef,
        client: ClientId,
        principal: Principal,
        number: Any,
        payload: Any,
        traceparent: str | None,
    ) -> dict[str, Any]: ...


class Delivery(Protocol):
    @property
    def session(self) -> SessionId: ...

    @property
    def appended(self) -> Appended | None: ...

    @property
    def error(self) -> RelayError | None: ...


class UserPush(Protocol):
    """core/user_push.py."""

    async def push(
        self,
        principal: Principal,
        user: UserId,
        items: tuple[Item, ...],
        idempotency_key: str | None,
        kept_ms: int | None = None,
    ) -> Sequence[Delivery]: ...


class Where(NamedTuple):
    """Who this gateway is, and whom the ring prefers for a session."""

    gateway: GatewayId
    prefer: Callable[[SessionRef], GatewayId | None]


class Media(Protocol):
    """core/media/intake.py."""

    frame_bytes: int

    async def take(self, ref: SessionRef, frame: MediaFrame) -> str:
        """What became of it: sent, nobody, over_rate, unavailable. Raises RelayError."""
        ...


class MediaParts(NamedTuple):
    media: Media
    refusal: Callable[[], RelayError | None]
    """Why a long body had better go elsewhere, e.g. a drain."""
    now_ms: Callable[[], int]


class PublicParts(NamedTuple):
    access: Access
    ingest: Ingest
    user_push: UserPush
    runs: Runs | None = None
    tokens: Tokens | None = None
    segments: SegmentOptions = _SEGMENTS
    """How a run's text is cut when its producer does not say."""
    kept: KeptSettings = _KEPT
    control: Control | None = None
    inputs: Inputs | None = None
    asks: Asks | None = None
    inbox: InboxDesk | None = None
    where: Where | None = None
    media: MediaParts | None = None
    intake: Intake | None = None


__all__ = [
    "Access",
    "Control",
    "Delivery",
    "Ingest",
    "Inputs",
    "Intake",
    "Media",
    "MediaParts",
    "Meter",
    "OpenIngest",
    "PublicParts",
    "Runs",
    "Ticket",
    "Tokens",
    "UserPush",
    "Where",
]
