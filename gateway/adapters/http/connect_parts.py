"""What the endpoints of all channels call: the core as they see it. Composition passes it in."""

from collections.abc import Callable
from typing import Any, Protocol

from gateway.domain.access.principal import Principal
from gateway.domain.admission.addresses import AddressKey
from gateway.domain.admission.kinds import Kind
from gateway.domain.wire.connect import ConnectRequest
from gateway.domain.wire.errors import RelayError
from gateway.domain.wire.ids import ConnectionId
from gateway.ports import Link


class Identity(Protocol):
    """core/access.py. Raises RelayError UNAUTHENTICATED, StoreUnavailable."""

    async def authenticate(self, token: str | None) -> Principal: ...

    async def redeem(self, ticket: str) -> Principal: ...


class Visit(Protocol):
    """core/visit.py: one client's connection from its claim to its end."""

    @property
    def connection_id(self) -> ConnectionId: ...

    @property
    def is_further_poll(self) -> bool: ...

    @property
    def head(self) -> int: ...

    @property
    def is_ending(self) -> bool: ...

    def begin(self, link: Link) -> None: ...

    def heard(self) -> None: ...

    def on_pong(self, payload: bytes) -> None: ...

    async def on_text(self, text: str) -> None: ...

    async def on_binary(self, data: bytes) -> None: ...

    def end(self, reason: str) -> None: ...

    async def leave(self, reason: str) -> None:
        """`end`, and a short wait until the route is gone."""
        ...


class Gate(Protocol):
    """core/gate.py. Raises RelayError."""

    @property
    def needs_addresses(self) -> bool: ...

    def check(
        self, kind: Kind, address: AddressKey | None, *, has_place: bool = ..., only_asks: bool = ...
    ) -> None: ...

    def failed(self, kind: Kind, address: AddressKey | None) -> None: ...

    def check_user(self, kind: Kind, principal: Principal) -> None: ...

    def admit(
        self, kind: Kind, address: AddressKey | None, principal: Principal | None, *, has_place: bool = ...
    ) -> Any:
        """What `leave` gives back; with `has_place` False nothing is to be given back."""
        ...

    def name_user(self, held: Any, principal: Principal) -> None: ...

    def leave(self, held: Any) -> None: ...


class Door(Protocol):
    """core/door.py. Raises RelayError, StoreUnavailable."""

    def now_ms(self) -> int:
        """Unix ms, for frames."""
        ...

    async def probe(self, request: ConnectRequest, principal: Principal) -> None: ...

    def check_quota(self, request: ConnectRequest, principal: Principal) -> None: ...

    async def enter(
        self, request: ConnectRequest, principal: Principal, check_present: Callable[[], None] = ...
    ) -> Visit:
        """`check_present` is called right before the claim; what it raises comes through."""
        ...

    def read_auth(self, text: str) -> str:
        """The token of a first message; RelayError when it is no `auth`."""
        ...

    def refusal_frame(self, request: ConnectRequest, error: RelayError) -> bytes:
        """An encoded `error` frame for a socket that was not let in."""
        ...


__all__ = ["Door", "Gate", "Identity", "Visit"]
