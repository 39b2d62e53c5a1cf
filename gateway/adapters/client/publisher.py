"""Publishes into one session exactly once and in order, whatever dies meanwhile: a registered producer with numbers.

`offer` takes messages, `run` sends them: what gathers while a request is under way travels in the next one.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

import aiohttp
from yarl import URL

from gateway.adapters.client.address import check_base, producer_url, push_url
from gateway.adapters.client.backoff import Backoff
from gateway.adapters.client.batches import Batch, SendQueue
from gateway.adapters.client.gateway_round import GatewayRound
from gateway.adapters.client.reply import Reply
from gateway.adapters.client.settings import PUBLISHER_DEFAULTS, PublisherSettings
from gateway.domain.streams.pieces import encode_json
from gateway.domain.wire.errors import ErrorCode


class PublishError(Exception):
    """Nothing more can be published; the text says why to a person."""


class MessageTooLarge(PublishError):
    """One message is above the limit. Nothing was sent, the publisher goes on."""


@dataclass(slots=True)
class PublishTally:
    messages: int = 0
    """Acknowledged: in the log, each once."""
    requests: int = 0
    retries: int = 0
    """Requests sent again with the same numbers."""
    registrations: int = 0
    lost_writes: int = 0
    """Acknowledged messages that the log had lost and got again."""
    given_up: int = 0
    """Acknowledged messages that the log had lost and that were no longer held here."""
    seq: int = 0
    """Of the last message, in its session."""


class Publisher:
    """One writer of one session. Start `run` in a task; `close`, then await that task."""

    def __init__(
        self,
        urls: Sequence[str],
        session: str,
        name: str | None = None,
        *,
        token: str | None = None,
        settings: PublisherSettings = PUBLISHER_DEFAULTS,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_trouble: Callable[[str], None] = lambda _cause: None,
    ) -> None:
        """`name` None: one of its own, so that no other publisher fences this one. `on_trouble` hears of each retry."""
        if not urls:
            raise ValueError("a publisher needs the URL of at least one gateway")
        rng = rng or random.Random()  # noqa: S311 - jitter and order, not a secret
        self._round = GatewayRound([check_base(url) for url in urls], rng)
        self._session = session
        self.name = name or f"publisher-{token_hex(8)}"
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._settings = settings
        self._clock = clock
        self._backoff = Backoff(settings.backoff, rng)
        self._on_trouble = on_trouble
        self._queue = SendQueue(settings)
        self._changed = asyncio.Condition()
        self._is_closing = False
        self._failure: PublishError | None = None
        self._epoch: int | None = None
        self._late_registrations = 0
        self._failing_since: float | None = None
        self.tally = PublishTally()

    async def offer(self, payload: dict[str, Any]) -> None:
        """Take one message for sending; waits while too much is unacknowledged. Raises PublishError."""
        body = encode_json(payload)
        if len(body) > self._settings.message_bytes:
            limit = self._settings.message_bytes
            raise MessageTooLarge(f"a message of {len(body)} bytes is above the limit of {limit}")
        async with self._changed:
            await self._changed.wait_for(lambda: self._has_room() or self._failure is not None)
            self._raise_failure()
            if self._is_closing:
                raise PublishError("the publisher is closed")
            self._queue.add(body)
            self._changed.notify_all()

    async def flush(self) -> None:
        """Wait until everything offered is in the log. Raises PublishError."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._queue.unsent_items or self._failure is not None)
            self._raise_failure()

    async def close(self) -> None:
        """No more messages: `run` ends when all are in the log."""
        async with self._changed:
            self._is_closing = True
            self._changed.notify_all()

    async def run(self) -> None:
        """Send until closed and all acknowledged. Raises PublishError."""
        timeout = aiohttp.ClientTimeout(total=self._settings.request_seconds)
        try:
            async with aiohttp.ClientSession(timeout=timeout, headers=self._headers) as http:
                while await self._has_more():
                    if self._epoch is None:
                        await self._register(http)
                    await self._push(http, self._queue.next_batch())
        except PublishError as exc:
            async with self._changed:
                self._failure = exc
                self._changed.notify_all()
            raise

    def _has_room(self) -> bool:
        return self._queue.unsent_bytes < self._settings.unsent_bytes

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise PublishError(str(self._failure)) from self._failure

    async def _has_more(self) -> bool:
        async with self._changed:
            await self._changed.wait_for(lambda: self._queue.unsent_items or self._is_closing)
            return self._queue.unsent_items > 0

    # ---- registering -------------------------------------------------------------------------------------------

    async def _register(self, http: aiohttp.ClientSession) -> None:
        """A new producer epoch: numbers begin at 1, and what an older one still has under way is refused."""
        while True:
            reply = await self._post(http, lambda base: producer_url(base, self._session, self.name), b"{}")
            if reply.status == 200 and isinstance(epoch := reply.body.get("epoch"), int):
                break
            # An attempt without an answer may take effect later and then fences the epoch that we got meanwhile.
            self._late_registrations += reply.is_unknown
            await self._retry_or_raise(reply)
        self._note_success()
        self._epoch = epoch
        self.tally.registrations += 1
        self._queue.renumber()

    # ---- pushing -----------------------------------------------------------------------------------------------

    async def _push(self, http: aiohttp.ClientSession, batch: Batch) -> None:
        """Send one batch until its outcome is known. Afterwards it is acknowledged, or the queue has changed."""
        if self._epoch is None:
            raise RuntimeError("pushing before registering")
        body = batch.encode(encode_json(self.name), self._epoch)
        is_unknown = False
        while True:
            self.tally.requests += 1
            reply = await self._post(http, lambda base: push_url(base, self._session), body)
            if reply.status == 200:
                break
            if reply.code in (ErrorCode.EXPECTED, ErrorCode.PRODUCER_UNKNOWN, ErrorCode.FENCED):
                self._renew_or_raise(reply, is_unknown=is_unknown)
                return
            is_unknown = is_unknown or reply.is_unknown
            self.tally.retries += 1
            await self._retry_or_raise(reply)
        self._note_success()
        self._check_results(reply, len(batch.bodies))
        async with self._changed:
            self._queue.acknowledge(len(batch.bodies))
            self._changed.notify_all()
        self.tally.messages += len(batch.bodies)

    def _check_results(self, reply: Reply, count: int) -> None:
        results = reply.body.get("results")
        if not isinstance(results, list) or len(results) != count:
            raise PublishError("the gateway's answer does not fit what was sent: is it a RelayRouter of version 1?")
        for result in results:
            if result.get("status") == "refused":
                raise PublishError(f"the gateway refused a message for good: {result.get('code')}")
            self.tally.seq = result.get("seq") or self.tally.seq

    def _renew_or_raise(self, reply: Reply, *, is_unknown: bool) -> None:
        """Answers about the producer itself: nothing of the batch was written by this request."""
        if reply.code == ErrorCode.PRODUCER_UNKNOWN:
            self._on_trouble("the session no longer knows this producer: registering again")
            self._epoch = None
        elif reply.code == ErrorCode.EXPECTED:
            self._expected(reply)
        elif reply.details.get("reason") == "run_ended":
            raise PublishError("this run has ended; publish under another --run")
        elif self._late_registrations and not is_unknown:
            self._late_registrations -= 1
            self._on_trouble("an own registration took effect late: registering again")
            self._epoch = None
        else:
            raise PublishError(f"another publisher took over the name {self.name!r}")

    def _expected(self, reply: Reply) -> None:
        number = reply.details.get("expected")
        if not isinstance(number, int) or number >= self._queue.next_number:
            raise PublishError(f"the gateway expects number {number}, which does not fit what it acknowledged")
        lost = self._queue.next_number - number
        if number >= self._queue.first_number:
            self.tally.lost_writes += self._queue.rewind(number)
            self.tally.messages -= lost
            self._on_trouble(f"the log lost its last {lost} messages of this producer: sending them again")
            return
        # The input of the oldest lost ones is gone; readers learn of it at its place.
        missing = self._queue.first_number - number
        self._queue.rewind(self._queue.first_number)
        self.tally.lost_writes += lost - missing
        self.tally.given_up += missing
        self.tally.messages -= lost
        self._on_trouble(f"the log lost {lost} messages, {missing} of which are no longer held here")
        self._epoch = None
        gap = {"kind": "producer_gap", "reason": "lost_writes", "producer": self.name, "count": missing}
        self._queue.renumber()
        self._queue.put_first(encode_json(gap))

    # ---- requests ----------------------------------------------------------------------------------------------

    async def _post(self, http: aiohttp.ClientSession, url_of: Callable[[str], URL], body: bytes) -> Reply:
        url = url_of(self._round.url)
        try:
            async with http.post(url, data=body) as response:
                return Reply.of(response.status, response.headers, await response.read())
        except aiohttp.ClientConnectorError as exc:
            return Reply(0, {}, str(exc))
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            cause = str(exc) or f"no answer within {self._settings.request_seconds:g} s"
            return Reply(0, {}, cause, is_unknown=True)

    async def _retry_or_raise(self, reply: Reply) -> None:
        """Wait before the same request goes out again, to the next URL. Raises PublishError when that is no use."""
        message = reply.error.get("message") or reply.cause
        if reply.is_final:
            raise PublishError(f"the gateway refused it: {message}")
        is_quota = reply.code == ErrorCode.QUOTA_EXCEEDED  # no trouble, and no other gateway grants more
        if is_quota:
            self._failing_since = None
        now = self._clock()
        self._failing_since = now if self._failing_since is None else self._failing_since
        if now - self._failing_since >= self._settings.give_up_seconds:
            raise PublishError(
                f"no gateway took it for {self._settings.give_up_seconds:g} s; the last answer: {message}"
            )
        if not is_quota:
            self._round.move()
        self._on_trouble(f"trying again: {message}")
        await asyncio.sleep(self._backoff.next_delay_seconds(reply.after_seconds or 0.0))

    def _note_success(self) -> None:
        self._failing_since = None
        self._backoff.reset()


__all__ = ["MessageTooLarge", "PublishError", "PublishTally", "Publisher"]
