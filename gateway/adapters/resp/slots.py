"""Which of a cluster's 16,384 slots a key has, and which server has which slot. Pure."""

from binascii import crc_hqx
from typing import Final, NamedTuple, TypeAlias

from gateway.adapters.resp.replies import Reply
from gateway.ports import StoreUnavailable

SLOTS: Final = 16_384

Spot: TypeAlias = tuple[str, int]
"""Host and port of a server."""


def slot_of(key: bytes) -> int:
    """CRC16 (XMODEM) of the key; where it has a hash tag `{...}` that is not empty, of the first one."""
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return crc_hqx(key, 0) % SLOTS


class View(NamedTuple):
    """What one server says of its cluster."""

    owners: tuple[Spot | None, ...]
    """The primary of each slot; None: nobody's."""
    replicas: frozenset[Spot]
    epoch: int
    """Grows with each promotion and each slot that moves: who is cut off from the others has a lower one."""
    is_ok: bool
    """It sees most of the primaries, and every slot has one."""

    @property
    def rank(self) -> tuple[bool, int]:
        """Of two views the one with the higher rank is nearer to the truth."""
        return self.is_ok, self.epoch


def parse_view(slots: Reply, info: Reply, asked: Spot) -> View:
    """From the replies to CLUSTER SLOTS and CLUSTER INFO by the server `asked`. StoreUnavailable when they are none."""
    owners: list[Spot | None] = [None] * SLOTS
    replicas = set()
    try:
        for first, last, primary, *others in slots:
            if not 0 <= first <= last < SLOTS:
                raise ValueError(f"slots {first} to {last}")
            owners[first : last + 1] = [_spot(primary, asked)] * (last - first + 1)
            replicas |= {_spot(other, asked) for other in others}
        fields = dict(line.partition(b":")[::2] for line in info.splitlines())
        return View(
            tuple(owners), frozenset(replicas), int(fields[b"cluster_current_epoch"]), fields[b"cluster_state"] == b"ok"
        )
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        raise StoreUnavailable("it is no member of a cluster", outcome_unknown=False) from None


def _spot(node: Reply, asked: Spot) -> Spot:
    """A server that does not know its own name means the one by which it was asked."""
    host = b"" if node[0] in (None, b"?") else node[0]
    return host.decode("ascii") or asked[0], int(node[1])


def parse_redirect(reason: str, asked: Spot) -> tuple[int, Spot] | None:
    """(slot, where it is) from `MOVED 3999 127.0.0.1:6381` or `ASK ...`; None when it is neither."""
    match reason.split(" "):
        case [("MOVED" | "ASK"), slot, place] if slot.isdigit() and int(slot) < SLOTS:
            host, _, port = place.rpartition(":")
            if port.isdigit():
                return int(slot), (host or asked[0], int(port))
    return None


__all__ = ["SLOTS", "Spot", "View", "parse_redirect", "parse_view", "slot_of"]
