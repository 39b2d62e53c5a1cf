"""Heads notices: twice a second, to each gateway we appended for, how far the touched sessions are (design.md 4).

They find a lost last message, which no later one would show. Each session is in two successive notices, because a
notice may be lost as well. Called by ingest (`note`) and by its own loop.
"""

import asyncio
from dataclasses import dataclass, field

from gateway.domain.wire.bus import HeadNotice, encode_heads
from gateway.domain.wire.ids import GatewayId, SessionRef
from gateway.ports import Appended, Bus
from gateway.settings import BusSettings

HEADS_A_NOTICE = 500
"""About 40 KiB: one notice never blocks a channel for long."""
MAX_HELD = 20_000
"""Sessions held for one gateway; at the bound the notice goes out early."""
_Heads = dict[bytes, HeadNotice]


@dataclass(slots=True)
class HeadsNotices:
    """One per gateway. Holds at most what was appended to within two intervals."""

    bus: Bus
    settings: BusSettings
    _new: dict[GatewayId, _Heads] = field(default_factory=dict)
    _told_once: dict[GatewayId, _Heads] = field(default_factory=dict)

    def note(self, ref: SessionRef, appended: Appended) -> None:
        """These messages were published to those gateways."""
        notice = HeadNotice(ref.key, appended.line, appended.head)
        for gateway in appended.gateways:
            heads = self._new.get(gateway)
            if heads is None:
                heads = self._new[gateway] = {}
            # Answers of pipelined appends may be noted out of order: a head never goes back on its line.
            known = heads.get(ref.key)
            if known is None or known.line != notice.line or known.head < notice.head:
                heads[ref.key] = notice
                if len(heads) >= MAX_HELD:
                    self.tell()

    async def run(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(self.settings.notice_interval_seconds)
            self.tell()

    def tell(self) -> None:
        """What is new since the last time, and what was new then."""
        new, before = self._new, self._told_once
        self._new, self._told_once = {}, new
        for gateway in new.keys() | before.keys():
            heads = list((before.get(gateway, {}) | new.get(gateway, {})).values())
            for first in range(0, len(heads), HEADS_A_NOTICE):
                self.bus.publish(gateway, encode_heads(heads[first : first + HEADS_A_NOTICE]))


__all__ = ["HEADS_A_NOTICE", "MAX_HELD", "HeadsNotices"]
