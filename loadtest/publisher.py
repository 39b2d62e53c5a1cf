"""A producer over plain HTTP: contiguous numbers, the same number again after every doubt, and a ledger of the truth.

Must never assume: what was not acknowledged is `uncertain`. Called by fault tests.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from loadtest.plain_http import Answer, HttpConnection, NoAnswer

Payload = dict[str, Any]
RETRY_SECONDS: Final = 0.15
RETRYABLE: Final = frozenset({429, 500, 502, 503})


class PublishFailed(Exception):
    """Given up, or refused for a reason that a correct producer never sees."""


@dataclass(slots=True)
class Entry:
    line: str
    seq: int
    payload: Payload


@dataclass(slots=True)
class Ledger:
    """What one session's producers were told. Shared by all of them."""

    entries: list[Entry] = field(default_factory=list)
    uncertain: list[Payload] = field(default_factory=list)
    """Payloads whose fate nobody told; they may be in the log."""

    def note(self, line: str, seq: int, payload: Payload) -> None:
        self.entries.append(Entry(line, seq, payload))

    @property
    def line(self) -> str:
        """The line that was named last."""
        return self.entries[-1].line if self.entries else ""

    @property
    def head(self) -> int:
        """Highest acknowledged seq of the newest line."""
        line = self.line
        return max((entry.seq for entry in self.entries if entry.line == line), default=0)

    def above(self, line: str, base: int) -> list[int]:
        """Seqs that were acknowledged on this line above `base`, ascending: what a fork at `base` has lost."""
        return sorted({entry.seq for entry in self.entries if entry.line == line and entry.seq > base})

    def effective(self) -> dict[int, Payload]:
        """Seq -> payload of the log as it is now: a newer line overrules the older ones."""
        newest: dict[int, Payload] = {entry.seq: entry.payload for entry in self.entries}
        return dict(sorted(newest.items()))

    def texts(self, first: int = 1) -> dict[str, str]:
        """Run -> text of its deltas with seq >= first."""
        parts: dict[str, list[str]] = {}
        for seq, payload in self.effective().items():
            if seq >= first and payload.get("kind") == "delta":
                parts.setdefault(payload["run"], []).append(payload["text"])
        return {run: "".join(pieces) for run, pieces in parts.items()}


@dataclass(slots=True)
class Publisher:
    """One producer of one session; one request at a time. `name` empty: anonymous."""

    urls: Sequence[str]
    session: str
    ledger: Ledger
    rng: random.Random
    name: str = ""
    token: str = ""
    deadline_seconds: float = 15
    request_seconds: float = 8
    """Longer than a gateway's own deadline, or its answer is never heard."""
    counts: Counter[str] = field(default_factory=Counter)
    live: list[bool] = field(default_factory=list)
    slowest_seconds: float = 0.0
    epoch: int = 0
    number: int = 1
    """The next one."""
    on_lost_writes: Callable[[int], None] = lambda _number: None
    _history: dict[int, Payload] = field(default_factory=dict)
    _connections: dict[str, HttpConnection] = field(default_factory=dict)
    _url: str = ""

    async def register(self) -> None:
        answer = await self._ask(f"/producers/{quote(self.name, safe='')}", {})
        if answer.status != 200:
            raise PublishFailed(f"register: {answer.status} {answer.body[:200]!r}")
        body = answer.json()
        self.epoch, self.number = body["epoch"], body["next"]
        self._history.clear()
        self.counts["registrations"] += 1

    async def publish(self, *payloads: Payload, key: str = "") -> list[int | None]:
        """The seqs. Raises PublishFailed. An anonymous message of unknown fate: [] and it is noted as uncertain."""
        began = time.monotonic()
        try:
            if not self.name:
                return await self._publish_anonymous(payloads, key)
            if not self.epoch:
                await self.register()
            return await self._publish_numbered(payloads)
        finally:
            self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)

    async def _publish_numbered(self, payloads: Sequence[Payload]) -> list[int | None]:
        first = self.number
        for offset, payload in enumerate(payloads):
            self._history[first + offset] = payload
        while True:
            body = {**_messages(payloads), "producer": self.name, "epoch": self.epoch, "number": first}
            answer = await self._ask("/push", body)
            if answer.status == 200:
                self.number = first + len(payloads)
                return self._note(answer, payloads)
            match answer.error_code:
                case "expected" if answer.error_details["expected"] < first:
                    await self._resend(answer.error_details["expected"], first)
                case "producer_unknown":
                    self.counts["producer_unknown"] += 1
                    await self.register()
                    first = self.number
                    self._history.update({first + offset: payload for offset, payload in enumerate(payloads)})
                case _:
                    raise PublishFailed(f"number {first}: {answer.status} {answer.body[:300]!r}")

    async def _resend(self, lost_from: int, until: int) -> None:
        """Acknowledged messages are gone: the log forgot them, this producer has not."""
        self.counts["lost_writes"] += 1
        self.on_lost_writes(lost_from)
        for number in range(lost_from, until):
            payload = self._history[number]
            body = {"payload": payload, "producer": self.name, "epoch": self.epoch, "number": number}
            answer = await self._ask("/push", body)
            if answer.status != 200:
                raise PublishFailed(f"resend of {number}: {answer.status} {answer.body[:300]!r}")
            self._note(answer, (payload,))
            self.counts["resent"] += 1

    async def _publish_anonymous(self, payloads: Sequence[Payload], key: str) -> list[int | None]:
        headers = {"Idempotency-Key": key} if key else {}
        answer = await self._ask("/push", _messages(payloads), headers=headers, is_repeatable=bool(key))
        if answer.status == 200:
            return self._note(answer, payloads)
        if answer.status == 503 and answer.error_details.get("outcome") != "not_written":
            self.ledger.uncertain += payloads
            self.counts["uncertain"] += len(payloads)
            return []
        raise PublishFailed(f"{answer.status} {answer.body[:300]!r}")

    def _note(self, answer: Answer, payloads: Sequence[Payload]) -> list[int | None]:
        body = answer.json()
        line = body["cursor"].rpartition(".")[0]
        seqs: list[int | None] = []
        for payload, result in zip(payloads, body["results"], strict=True):
            if result["status"] not in ("ok", "duplicate"):
                raise PublishFailed(f"an item was refused: {result}")
            self.counts[result["status"]] += 1
            seqs.append(result["seq"])
            if result["seq"] is not None:
                self.ledger.note(line, result["seq"], payload)
        self.live.append(body["live"])
        return seqs

    async def _ask(
        self, path: str, body: Any, *, headers: dict[str, str] | None = None, is_repeatable: bool = True
    ) -> Answer:
        """Repeats on any of the URLs what is safe to repeat, until the deadline; then the last answer."""
        deadline = time.monotonic() + self.deadline_seconds
        last: Answer | None = None
        while True:
            self._url = self._url or self.rng.choice(list(self.urls))
            connection = self._connections.setdefault(self._url, HttpConnection(self._url, self._auth()))
            try:
                last = await connection.ask(
                    "POST",
                    f"/v1/sessions/{quote(self.session, safe='')}{path}",
                    body,
                    headers=headers,
                    timeout_seconds=self.request_seconds,
                )
            except NoAnswer as exc:
                self.counts["no_answer"] += 1
                if exc.was_sent and not is_repeatable:
                    return Answer(503, {}, b'{"error":{"code":"no_answer","details":{"outcome":"unknown"}}}')
            else:
                is_known = last.error_details.get("outcome") == "not_written" or last.error_code == "draining"
                if last.status not in RETRYABLE or not (is_repeatable or is_known):
                    return last
                self.counts[f"answered_{last.status}"] += 1
                if last.status in (429, 503) and "retry-after" not in last.headers:
                    raise PublishFailed(f"{last.status} without Retry-After")
            self._url = ""
            if time.monotonic() > deadline:
                raise PublishFailed(f"no success within {self.deadline_seconds} s: {last and last.body[:300]!r}")
            await asyncio.sleep(self.rng.uniform(0.02, RETRY_SECONDS))

    def _auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


def _messages(payloads: Sequence[Payload]) -> dict[str, Any]:
    if len(payloads) == 1:
        return {"payload": payloads[0]}
    return {"messages": [{"payload": payload} for payload in payloads]}


_WORDS: Final = (
    "stream ",
    "ütf ",
    "日本語",
    "🙂‍↕️",
    "e\u0301 ",
    "שלום ",
    '"quoted" ',
    "back\\slash ",
    "line\n",
    "\t",
    "x" * 40,
)


def delta(run: str, rng: random.Random, size: int = 3) -> Payload:
    """A delta with text that is easy to cut wrongly."""
    return {"kind": "delta", "run": run, "text": "".join(rng.choices(_WORDS, k=size))}


__all__ = ["Entry", "Ledger", "Payload", "PublishFailed", "Publisher", "delta"]
