"""A process of a crowd: `python -m loadtest.crowd --urls A,B --sessions 150 --clients 20`. JSON lines in and out.

`do`: `live` (how many are, since a moment), `phase` (percentiles of the phase that ends now), `report`, `urls`,
`digests` (session -> SHA-256 of the text of the run that ended last).
A token comes in the environment as CROWD_TOKEN: what is on a command line, everybody may read.
"""

import argparse
import gc
import heapq
import itertools
import json
import os
import random
import resource
import select
import time
from collections import Counter
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from loadtest.crowd.client import Client
from loadtest.crowd.link import Link, Refusal
from loadtest.crowd.pulse import LOOK_SECONDS, Due, Pulse
from loadtest.crowd.race import Race
from loadtest.crowd.text import Reading

POLL_SECONDS: Final = 0.25
OPENING: Final = 64
"""First connects under way at once."""
_STDIN: Final = 0


class Crowd:
    """The loop of all clients of this process."""

    def __init__(self, urls: list[str], rng: random.Random, quiet_seconds: float = 0.0, token: str = "") -> None:
        """`quiet_seconds`: silence after which a link is asked whether it lives; 0: never, sockets' ends will tell."""
        self.token = token
        self.urls: list[SplitResult] = [urlsplit(url) for url in urls]
        self.rng = rng
        self.counts: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.clients: list[Client] = []
        self._attempts_by_second: Counter[int] = Counter()
        self._epoll = select.epoll()
        self._links: dict[int, tuple[Link, Client]] = {}
        self._races: dict[Client, Race] = {}
        """Of attempts that have no connection yet."""
        self._ended: list[Link] = []
        """Closed when all events of a look are dealt with: a new socket may have the same number."""
        self._timers: list[tuple[float, int, Client]] = []
        self._numbers = itertools.count()
        self._now = time.monotonic()
        self._to_open: list[Client] = []
        self._opening: set[Client] = set()
        self._quiet_seconds = quiet_seconds
        self._looked_at = self._now

    # ---- what clients ask of it --------------------------------------------------------------------------------

    def now(self) -> float:
        return self._now

    def later(self, seconds: float, client: Client) -> None:
        heapq.heappush(self._timers, (self._now + seconds, next(self._numbers), client))

    def open(self, client: Client, url: SplitResult, path: str) -> None:
        self._attempts_by_second[int(time.time())] += 1
        began_at = self._now  # the time for all of its sockets
        race = Race(began_at, lambda: Link(url, path, client.on_frame, Pulse(began_at), self.token))
        link = race.enter()
        if link.refusal is not None:
            link.close()
            client.on_refused(link.refusal)
            return
        self._races[client] = race
        self._listen(link, client)

    def _listen(self, link: Link, client: Client) -> None:
        self._links[link.fileno()] = link, client
        self._epoll.register(link, select.EPOLLOUT)

    # ---- its life ----------------------------------------------------------------------------------------------

    def add(self, session: str, name: str, *, is_timed: bool) -> None:
        client = Client(self, session, name, is_timed, Reading(self.wrong))
        self.clients.append(client)
        self._to_open.append(client)

    def run(self) -> None:
        """Until standard input ends."""
        self._epoll.register(_STDIN, select.EPOLLIN)
        self._to_open.reverse()
        while True:
            events = self._epoll.poll(self._wait_seconds())
            self._now = time.monotonic()
            for number, event in events:
                if number == _STDIN:
                    if not (line := os.read(_STDIN, 65536)):
                        return
                    print(json.dumps(self._answer(json.loads(line))), flush=True)
                elif (found := self._links.get(number)) is not None:
                    self._take(number, event, *found)
            while self._ended:
                self._ended.pop().close()
            while self._timers and self._timers[0][0] <= self._now:
                heapq.heappop(self._timers)[2].attempt()
            self._open_some()
            if self._quiet_seconds and self._now - self._looked_at >= LOOK_SECONDS:
                self._look()

    def _look(self) -> None:
        """For links that died without a word, as with the power of their gateway's machine."""
        late_seconds = self._now - self._looked_at - LOOK_SECONDS
        self._looked_at = self._now
        for client, race in self._races.items():
            if race.wants_another(self._now) and (another := race.enter()).refusal is None:
                self._listen(another, client)
        for link, client in list(self._links.values()):
            match link.pulse.look(self._now, late_seconds, self._quiet_seconds, is_welcome=bool(link.connection)):
                case Due.ASK:
                    link.ask()
                case Due.DEAD:
                    self.counts["fell_silent"] += 1
                    self._drop(link, client)
                case Due.NOTHING:
                    pass

    def _open_some(self) -> None:
        if not self._to_open:
            return
        self._opening = {client for client in self._opening if not client.is_live}
        while self._to_open and len(self._opening) < OPENING:
            client = self._to_open.pop()
            self._opening.add(client)
            client.attempt()

    def _wait_seconds(self) -> float:
        if self._to_open:
            return 0.002
        return max(0.0, min(POLL_SECONDS, self._timers[0][0] - time.monotonic())) if self._timers else POLL_SECONDS

    def _take(self, number: int, event: int, link: Link, client: Client) -> None:
        link.pulse.heard_at = self._now
        if event & select.EPOLLOUT and not link.is_upgraded:
            if link.on_writable():
                self._epoll.modify(number, select.EPOLLIN)
                for loser in self._races.pop(client).others(link):
                    self._forget(loser)
                return
        elif link.on_readable():
            return
        self._drop(link, client)

    def _forget(self, link: Link) -> None:
        del self._links[link.fileno()]
        self._epoll.unregister(link)
        self._ended.append(link)

    def _drop(self, link: Link, client: Client) -> None:
        """It has ended."""
        self._forget(link)
        if (race := self._races.get(client)) is not None and link in race.links:
            race.links.remove(link)
            if race.links:
                return
            del self._races[client]
        if link.refusal is not None or not link.is_upgraded:
            client.on_refused(link.refusal or Refusal(0))
        else:
            client.on_end(link)

    # ---- questions ---------------------------------------------------------------------------------------------

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["do"]:
            case "live":
                since = asked.get("since", 0.0)
                return {
                    "live": sum(client.is_live for client in self.clients),
                    "positions": min(
                        (client.reading.position for client in self.clients if client.is_timed), default=0
                    ),
                    "last_live_at": max((client.live_at for client in self.clients), default=0.0),
                    "returned": sum(client.live_at > since for client in self.clients),
                }
            case "urls":
                self.urls = [urlsplit(url) for url in asked["urls"]]
                return {}
            case "phase":
                return self._end_phase()
            case "report":
                return {
                    "counts": dict(self.counts),
                    "wrong": dict(self.wrong),
                    "longest_away_seconds": max((client.longest_away_seconds for client in self.clients), default=0.0),
                    "forks": sum(client.reading.forks for client in self.clients),
                    "ended_runs": sum(client.reading.ended_runs for client in self.clients),
                    "attempts_by_second": dict(self._attempts_by_second),
                }
            case "digests":
                return {client.session: client.reading.digest for client in self.clients}
            case other:
                raise ValueError(other)

    def _end_phase(self) -> dict[str, Any]:
        """Times of the clients that kept their socket all the while."""
        stayed = [client for client in self.clients if client.is_timed and not client.has_moved]
        times = [value for client in stayed for value in client.times_ms]
        moved = sum(client.has_moved for client in self.clients)
        for client in self.clients:
            del client.times_ms[:]
            client.has_moved = False
        gc.collect()
        return {"stayed": len(stayed), "moved": moved, "times_ms": [round(value, 1) for value in times]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", required=True, help="comma between them")
    parser.add_argument("--prefix", default="crowd")
    parser.add_argument("--sessions", type=int, default=0, help="with streams, each read by --clients clients")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--idle", type=int, default=0, help="clients with a session of their own and no stream")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--quiet-seconds", type=float, default=0.0, help="ask silent links whether they live")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    token = os.environ.get("CROWD_TOKEN", "")
    crowd = Crowd(arguments.urls.split(","), random.Random(arguments.seed), arguments.quiet_seconds, token)
    for number in range(arguments.first, arguments.first + arguments.sessions):
        for client in range(arguments.clients):
            crowd.add(f"{arguments.prefix}-{number}", f"c{client}", is_timed=True)
    for number in range(arguments.idle):
        crowd.add(f"{arguments.prefix}-idle-{arguments.seed}-{number}", "c", is_timed=False)
    gc.collect()
    gc.freeze()
    crowd.run()


if __name__ == "__main__":
    main()
