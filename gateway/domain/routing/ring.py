"""The ring of gateways: everybody who knows the same members names the same one for a thing (A3, R28).

Immutable: a change of members makes a new ring, which is swapped whole. Preference only: nothing depends on it.
"""

from collections.abc import Iterable

from uhashring import HashRing

from gateway.domain.wire.ids import GatewayId, SessionRef, encode_part


class Ring:
    """By ketama: its hash is no salted one, and the order of the members does not matter."""

    __slots__ = ("_ring", "members")

    def __init__(self, members: Iterable[GatewayId] = ()) -> None:
        self.members = tuple(sorted(set(members)))
        self._ring = HashRing(nodes=list(self.members), hash_fn="ketama") if self.members else None

    def owner(self, thing: str) -> GatewayId | None:
        """None: there are no members."""
        return None if self._ring is None else GatewayId(self._ring.get_node(thing))


def session_thing(ref: SessionRef) -> str:
    """How a session is named on the ring; no two sessions alike (R24)."""
    return f"{encode_part(ref.tenant)}:{encode_part(ref.session)}"


__all__ = ["Ring", "session_thing"]
