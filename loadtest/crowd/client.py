"""One client of a crowd: where it stands, its sockets, and when it tries again: by the rules of the SDKs."""

import random
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import SplitResult, urlencode

from loadtest.crowd.link import Link, Refusal, parse
from loadtest.crowd.text import Reading

BACKOFF_SECONDS: Final = 1.0
MAX_BACKOFF_SECONDS: Final = 30.0
STABLE_SECONDS: Final = 10.0


class Loop(Protocol):
    """What a client needs of the crowd's loop."""

    urls: list[SplitResult]
    rng: random.Random
    counts: "Counter[str]"
    token: str

    def now(self) -> float: ...
    def open(self, client: "Client", url: SplitResult, path: str) -> None: ...
    def later(self, seconds: float, client: "Client") -> None: ...


@dataclass(slots=True, eq=False)
class Client:
    loop: Loop
    session: str
    name: str
    is_timed: bool
    reading: Reading
    links: list[Link] = field(default_factory=list)
    """Welcomed ones; the last is the newest."""
    live_at: float = 0.0
    """When it was last welcomed."""
    longest_away_seconds: float = 0.0
    """From the last byte of its last socket to the next welcome."""
    has_moved: bool = False
    """In the running phase it lost or changed a socket."""
    times_ms: "array[float]" = field(default_factory=lambda: array("f"))
    """From the append in Redis to here, of the running phase."""
    _away_since: float = 0.0
    _failures: int = 0
    _tried: list[SplitResult] = field(default_factory=list)
    """In the running attempt: a balancer goes past gateways that do not serve."""
    _is_trying: bool = False
    _slot_at: float = 0.0
    """When it was asked to be back; later than now: it waits for that."""
    _must_move: bool = False

    @property
    def is_live(self) -> bool:
        return bool(self.links)

    def attempt(self) -> None:
        """Its time has come: to come back, or to move to another gateway while the old socket serves on."""
        if self._is_trying or (self.links and not self._must_move):
            return
        self._is_trying, self._tried = True, []
        self.loop.counts["attempts"] += 1
        self._try_next()

    def _try_next(self) -> None:
        url = self.loop.rng.choice([url for url in self.loop.urls if url not in self._tried])
        self._tried.append(url)
        query = {"client": self.name}
        if self.reading.cursor:
            query["cursor"] = self.reading.cursor
        else:
            query["from"] = "start"
        if self.links:
            query["replaces"] = self.links[-1].connection
        if self._failures:
            query["retry"] = str(self._failures)
        self.loop.open(self, url, f"/v1/sessions/{self.session}/ws?{urlencode(query)}")

    # ---- what its sockets say ----------------------------------------------------------------------------------

    def on_frame(self, link: Link, payload: bytes) -> None:
        frame = parse(payload)
        if frame["type"] == "text":
            link.last_seq = self.reading.message(frame, link.last_seq)
            if self.is_timed:
                self.times_ms.append(link.arrived_ms - frame["timestamp"])
            return
        body = frame["payload"]
        match body["kind"]:
            case "welcome":
                link.last_seq = self.reading.begin(body["cursor"])
                link.connection = body["connection"]
                self.links.append(link)
                self.live_at = self.loop.now()
                if self._away_since:
                    self.longest_away_seconds = max(self.longest_away_seconds, self.live_at - self._away_since)
                    self._away_since = 0.0
                self._is_trying = self._must_move = False
            case "reconnect_later":
                self._must_move = True
                self._slot_at = self.loop.now() + body["after_ms"] / 1000
                self.loop.later(body["after_ms"] / 1000, self)
            case "forked":
                self.reading.forked(body["cursor"])
            case "gap":
                link.last_seq = self.reading.gap(body)
            case "snapshot":
                self.reading.wrong["snapshot"] += 1
            case _:
                pass

    def on_end(self, link: Link) -> None:
        """A socket ended that had been let in."""
        self.has_moved = True
        was_last = link in self.links
        if was_last:
            self.links.remove(link)
            if not self.links:
                self._away_since = link.pulse.heard_at
        else:
            self._is_trying = False  # it ended before its welcome
        self.loop.counts[f"closed_{link.close_code or 1006}"] += 1
        if self.links or self._is_trying:
            return  # moved, or about to be back
        if self.loop.now() - self.live_at >= STABLE_SECONDS:
            self._failures = 0
        if self._slot_at > self.loop.now():
            return
        self._back_off()

    def on_refused(self, refusal: Refusal) -> None:
        if refusal.status == 0 or refusal.code == "draining":
            self.loop.counts["passed_by"] += 1
            if len(self._tried) < len(self.loop.urls):
                self._try_next()
                return
        else:
            self.loop.counts[f"refused_{refusal.status}_{refusal.code}"] += 1
        self._is_trying = False
        if refusal.after_seconds is None or refusal.code == "draining":
            self._back_off()
        else:
            self._failures += 1
            self.loop.later(refusal.after_seconds * self.loop.rng.uniform(1, 1.25), self)

    def _back_off(self) -> None:
        ceiling = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0 ** min(self._failures, 5))
        self._failures += 1
        self.loop.later(self.loop.rng.uniform(0, ceiling), self)


__all__ = ["Client"]
