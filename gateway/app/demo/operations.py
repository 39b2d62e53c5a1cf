"""What an operator does to a cluster that is in use: roll it, make it larger, make it smaller. All by real signals."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from gateway.app.demo.gateways import GatewayProcess, Gateways
from gateway.app.demo.until import until
from gateway.domain.operator_error import OperatorError

MOST_GATEWAYS: Final = 6
LEAST_GATEWAYS: Final = 2
_TURN_SECONDS: Final = 45.0
"""For one gateway to drain, end and be replaced; it may have been frozen when its turn came."""
_SETTLE_SECONDS: Final = 10.0
"""Until everybody who was there is live elsewhere."""


class Operations:
    """One at a time: what is asked meanwhile is refused, with False.

    `terminate` sends SIGTERM; `places` says behind which gateway each client reads; `watch` keeps a new one's place.
    """

    def __init__(
        self,
        gateways: Gateways,
        terminate: Callable[[GatewayProcess], bool],
        places: Callable[[], Mapping[str, str]],
        watch: Callable[[GatewayProcess], None],
        note: Callable[[str], None],
    ) -> None:
        self._gateways = gateways
        self._terminate = terminate
        self._places = places
        self._watch = watch
        self._note = note
        self.running: str | None = None
        """In words; None: nothing runs."""
        self.done: list[str] = []

    @property
    def can_grow(self) -> bool:
        return self.running is None and len(self._gateways.members) < MOST_GATEWAYS

    @property
    def can_shrink(self) -> bool:
        return self.running is None and len(self._gateways.members) > LEAST_GATEWAYS

    async def roll(self) -> bool:
        """Each gateway is drained and replaced, one after the other."""
        if self.running is not None:
            return False
        members = list(self._gateways.members)
        moves = 0
        try:
            for turn, member in enumerate(members, 1):
                self.running = f"roll {turn} of {len(members)}: {member.name}"
                moves += await self._replace(member)
        finally:
            self.running = None
        self._finish(f"rolled {len(members)} gateways: {moves} moves of clients")
        return True

    async def scale_out(self) -> bool:
        if not self.can_grow:
            return False
        self.running = "scale out"
        began = time.monotonic()
        try:
            member = await self._gateways.add()
        except OperatorError as exc:
            self._note(str(exc).splitlines()[0])
            return False
        finally:
            self.running = None
        self._watch(member)
        self._finish(f"scaled out: {member.name} serves after {time.monotonic() - began:.1f} s")
        return True

    async def scale_in(self) -> bool:
        """The newest leaves: its clients move, its place stays empty."""
        if not self.can_shrink:
            return False
        member = self._gateways.members[-1]
        before = self._clients_at(member)
        member.is_leaving = self._terminate(member)
        if not member.is_leaving:
            return False
        self.running = f"scale in: {member.name} leaves"
        try:
            has_left = await until(lambda: member not in self._gateways.members, _TURN_SECONDS)
            moved = await self._moved(before, member)
        finally:
            self.running = None
        self._finish(f"scaled in: {member.name} {'is gone' if has_left else 'still drains'}; {moved}")
        return True

    async def _replace(self, member: GatewayProcess) -> int:
        """How many clients it had."""
        pid, began = member.pid, time.monotonic()
        before = self._clients_at(member)
        if pid is None or not self._terminate(member):
            return 0  # dead already, and about to be replaced
        if not await until(lambda: member.state == "up" and member.pid not in (None, pid), _TURN_SECONDS):
            self._note(f"{member.name} was not replaced within {_TURN_SECONDS:g} s")
        self._note(f"{member.name} replaced in {time.monotonic() - began:.1f} s; {await self._moved(before, member)}")
        return len(before)

    async def _moved(self, clients: list[str], member: GatewayProcess) -> str:
        """Where they are now. Some of a client's places may be this member again: its successor."""
        await until(lambda: all(self._places().get(client) for client in clients), _SETTLE_SECONDS)
        places = self._places()
        told = [f"{client} to {places.get(client) or 'nowhere yet'}" for client in sorted(clients)]
        return ", ".join(told) or f"nobody was at {member.name}"

    def _clients_at(self, member: GatewayProcess) -> list[str]:
        return [client for client, place in self._places().items() if place == member.name]

    def _finish(self, words: str) -> None:
        self.done.append(words)
        self._note(words)


__all__ = ["LEAST_GATEWAYS", "MOST_GATEWAYS", "Operations"]
