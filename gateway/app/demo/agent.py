"""The demo's agent: pipes recordings into the stream endpoint, asks people, and takes what they say from its inbox.

It knows the cluster by one URL, that of the proxy before the gateways, and none of its requests may be lost by a fault.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import aiohttp

from gateway.adapters.client.backoff import Backoff
from gateway.adapters.client.inbox import Inbox, InboxItem, InboxSettings
from gateway.adapters.client.publish_stream import StreamPublisher, StreamResult
from gateway.adapters.client.publisher import PublishError
from gateway.adapters.client.reply import Reply
from gateway.adapters.client.settings import BackoffSettings, StreamSettings
from gateway.app.demo.streams import RecordedStream
from gateway.app.demo.tally import Said, Source
from gateway.core.tasks import TaskOwner
from gateway.domain.streams.segment import SegmentMode

PATTERN: Final = r"[,;.!?\n]+\s*"
"""Of mode `pattern`: a piece ends with its punctuation."""
_PATIENCE: Final = StreamSettings(request_seconds=4.0, connect_seconds=2.0)
_INBOX: Final = InboxSettings(lease_seconds=10, wait_seconds=5.0, request_seconds=3.0)
_BETWEEN_RUNS_SECONDS: Final = 1.5
_ASK_AFTER: Final = 0.3
"""Of a run, then the agent asks."""
_ASK_EXPIRES_SECONDS: Final = 60.0
_HEAD_SECONDS: Final = 0.5
_REQUEST_SECONDS: Final = 3.0
_KEPT_ITEMS: Final = 12
OPTIONS: Final = ("go on", "stop")


class DemoAgent:
    """`play`, `hear` and `watch` run until they are cancelled, or `is_ending`."""

    def __init__(
        self,
        url: str,
        session: str,
        streams: Sequence[RecordedStream],
        source: Source,
        owner: TaskOwner,
        rng: random.Random,
        note: Callable[[str], None],
    ) -> None:
        self._url = url
        self._session = session
        self._streams = streams
        self._source = source
        self._owner = owner
        self._rng = rng
        self._note = note
        self.segment = SegmentMode.STRUCTURE
        """Of the next run."""
        self.open_run: str | None = None
        self.is_ending = False
        self.head = 0
        """Of the session's log, a moment ago."""
        self.said = Said()
        self.items: deque[dict[str, Any]] = deque(maxlen=_KEPT_ITEMS)
        """What the inbox brought, the last one first."""
        self.asks: set[str] = set()
        """Those that are in the log."""
        self.answered: set[str] = set()
        self._asked = 0

    # ---- runs --------------------------------------------------------------------------------------------------

    async def play(self) -> None:
        """One recording after the other, each as one run, until `is_ending`."""
        number = 0
        try:
            while not self.is_ending:
                stream = self._streams[number % len(self._streams)]
                number += 1
                asking = self._owner.start("ask", self._ask_in(stream.seconds * _ASK_AFTER, f"run-{number}"))
                await self.publish(stream, f"run-{number}", lambda: self.is_ending)
                asking.cancel()
                if not self.is_ending:
                    await asyncio.sleep(_BETWEEN_RUNS_SECONDS)
        except PublishError as exc:
            self._note(f"nothing more is published: {exc}")

    async def publish(self, stream: RecordedStream, run: str, is_hurried: Callable[[], bool]) -> StreamResult:
        """One run, to its end in the log. Raises PublishError."""
        self._source.texts[run] = stream.text
        self._source.reasonings[run] = stream.reasoning
        self.open_run = run
        self._note(f"{run} begins: {stream.name}, in segments by {self.segment.value}")
        options = {"segment": self.segment.value}
        if self.segment is SegmentMode.PATTERN:
            options["pattern"] = PATTERN
        publisher = StreamPublisher(
            [self._url],
            self._session,
            run,
            dialect=stream.dialect.value,
            options=options,
            settings=_PATIENCE,
            rng=self._rng,
            on_trouble=lambda cause: self._note(f"{run}: {cause}"),
        )
        result = await publisher.publish(stream.play(is_hurried))
        self._source.ended.add(run)
        self.open_run = None
        if result.was_stopped:
            self.said.interrupts += result.reason == "interrupted"
            shown = "" if result.seen is None else f", who had seen {result.seen['at']} bytes"
            self._note(f"the agent stops {run}: {result.reason} by a reader{shown}")
        return result

    # ---- asks --------------------------------------------------------------------------------------------------

    async def ask(self, run: str) -> str:
        """Returns the ask's id."""
        self._asked += 1
        ask = f"ask-{self._asked}"
        body = {
            "ask": ask,
            "message": f"Shall I go on with {run}?",
            "options": list(OPTIONS),
            "run": run,
            "expires_in": _ASK_EXPIRES_SECONDS,
        }
        await self._request("POST", "/asks", body)
        self.asks.add(ask)
        self._note(f"the agent asks: {body['message']}")
        return ask

    async def _ask_in(self, seconds: float, run: str) -> None:
        await asyncio.sleep(seconds)
        await self.ask(run)

    # ---- the inbox ---------------------------------------------------------------------------------------------

    async def hear(self) -> None:
        async with Inbox([self._url], "demo-agent", settings=_INBOX, rng=self._rng) as inbox:
            async for item in inbox:
                await self._heard(item)
                await item.ack()

    async def _heard(self, item: InboxItem) -> None:
        fields = item.fields
        who = fields.get("client") or "nobody"
        what = {
            "input": lambda: f"“{item.payload.get('text')}”",
            "answer": lambda: f"{fields['ask']}: {item.payload.get('value')}",
        }.get(item.kind, lambda: fields.get("run") or fields.get("ask"))()
        self.items.appendleft({"id": item.id, "kind": item.kind, "who": who, "what": what})
        self._note(f"inbox: {item.kind} of {who}: {what}")
        if item.kind == "input":
            self.said.inputs += 1
        elif item.kind == "answer":
            self.said.answers += 1
            self.answered.add(fields["ask"])
            if item.payload.get("value") == "stop":
                await self._request("POST", f"/runs/{fields['run']}/cancel", {"reason": "the answer was stop"})

    # ---- requests ----------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Keeps `head` fresh."""
        while True:
            reply = await self._request("GET", "", None)
            self.head = max(self.head, reply.body.get("head", 0))
            await asyncio.sleep(_HEAD_SECONDS)

    async def _request(self, method: str, path: str, body: dict[str, Any] | None) -> Reply:
        """Again until somebody answers for good: each of these requests may be repeated."""
        backoff = Backoff(BackoffSettings(base_seconds=0.1, max_seconds=1.0), self._rng)
        timeout = aiohttp.ClientTimeout(total=_REQUEST_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as http:
            while True:
                try:
                    url = f"{self._url}/v1/sessions/{self._session}{path}"
                    async with http.request(method, url, json=body) as response:
                        reply = Reply.of(response.status, response.headers, await response.read())
                except (aiohttp.ClientError, OSError, TimeoutError) as exc:
                    reply = Reply(0, {}, str(exc))
                if reply.status == 200 or reply.is_final:
                    return reply
                await asyncio.sleep(backoff.next_delay_seconds(reply.after_seconds or 0.0))


__all__ = ["OPTIONS", "DemoAgent"]
