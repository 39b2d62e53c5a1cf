"""Publishes one run as a stream, whatever dies meanwhile: after each failure it attaches elsewhere and goes on.

    urls = ["http://gw-1:8080", "http://gw-2:8080"]
    result = await publish_stream(urls, "chat-42", "run-7", chunks, dialect="openai")

`chunks` is any async iterator of bytes or text, as a provider's client gives them. The input is held until the gateway
has it in the log. When a user interrupts the run, `chunks` is closed and the result says so.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from gateway.adapters.client.address import check_base, run_url
from gateway.adapters.client.backoff import Backoff
from gateway.adapters.client.gateway_round import GatewayRound
from gateway.adapters.client.kept_input import InputGone, KeptInput
from gateway.adapters.client.lease_watch import LeaseWatch
from gateway.adapters.client.publisher import PublishError
from gateway.adapters.client.reply import Reply
from gateway.adapters.client.settings import STREAM_DEFAULTS, StreamSettings
from gateway.domain.streams.pieces import encode_json
from gateway.domain.wire.errors import ErrorCode

_ATTACH_AFTER = frozenset({ErrorCode.LOST_WRITES, ErrorCode.DRAINING, ErrorCode.UNAVAILABLE, ErrorCode.BUSY})
_BEGUN_CHARACTER = 3
"""Bytes of a character that is not whole."""
_OURS = frozenset({"complete", "incomplete", "failed"})
"""Reasons that only the writer gives."""


@dataclass(slots=True)
class StreamResult:
    """How the run ended. `answer`: the gateway's report; `seen`: what the user had seen when interrupting."""

    run: str
    reason: str
    answer: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, int] | None = None
    attaches: int = 0
    """How often it went on after a failure."""
    lost_writes: int = 0
    """How often the log had lost what it had acknowledged, and got it again."""

    @property
    def was_stopped(self) -> bool:
        """Somebody else ended it: stop generating."""
        return self.reason not in _OURS


async def publish_stream(
    urls: Sequence[str],
    session: str,
    run: str,
    source: AsyncIterator[bytes | str],
    *,
    dialect: str = "text",
    options: Mapping[str, Any] | None = None,
    token: str | None = None,
    settings: StreamSettings = STREAM_DEFAULTS,
    rng: random.Random | None = None,
    on_trouble: Callable[[str], None] = lambda _cause: None,
) -> StreamResult:
    """Returns when the run has ended in the log. `options`: further query of the stream (`segment`, `tokens`, ...).

    Raises PublishError when it cannot go on. A source that raises OSError ends the run as `incomplete`.
    """
    publishing = StreamPublisher(
        urls, session, run, dialect=dialect, options=options, token=token, settings=settings, rng=rng,
        on_trouble=on_trouble,
    )  # fmt: skip
    return await publishing.publish(source)


class StreamPublisher:
    """One run; `publish` once."""

    def __init__(
        self,
        urls: Sequence[str],
        session: str,
        run: str,
        *,
        dialect: str = "text",
        options: Mapping[str, Any] | None = None,
        token: str | None = None,
        settings: StreamSettings = STREAM_DEFAULTS,
        rng: random.Random | None = None,
        on_trouble: Callable[[str], None] = lambda _cause: None,
    ) -> None:
        if not urls:
            raise ValueError("a publisher needs the URL of at least one gateway")
        rng = rng or random.Random()  # noqa: S311 - jitter and order, not a secret
        self._round = GatewayRound([check_base(url) for url in urls], rng)
        self._session = session
        self._run = run
        self._query = {"dialect": dialect} | {name: str(value) for name, value in (options or {}).items()}
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._settings = settings
        self._backoff = Backoff(settings.backoff, rng)
        self._on_trouble = on_trouble
        self._input = KeptInput(settings.kept_bytes)
        self._breakage: str | None = None
        self._failing_since: float | None = None
        self._epoch: int | None = None
        self._offset = 0
        self._has_tried = False
        self._late_attaches = 0
        self._watch: LeaseWatch
        self.result = StreamResult(run, "")

    async def publish(self, source: AsyncIterator[bytes | str]) -> StreamResult:
        """See publish_stream."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._settings.connect_seconds)
        async with aiohttp.ClientSession(timeout=timeout, headers=self._headers) as http:
            try:
                async with asyncio.TaskGroup() as group:
                    attempts = group.create_task(self._attempts(http), name="publish-stream")
                    pump = group.create_task(self._pump(source, http), name="publish-source")
                    self._watch = LeaseWatch(lambda: self._ask_another(http), self._settings.watch_seconds)
                    watch = group.create_task(self._watch.run(), name="publish-watch")
                    pump.add_done_callback(lambda _: self._source_ended(attempts))
                    attempts.add_done_callback(lambda _: (pump.cancel(), watch.cancel()))
                if not self.result.reason:
                    await self._end_broken(http)
            except BaseExceptionGroup as exc:
                raise exc.exceptions[0] from None
            finally:
                await _close(source)
        return self.result

    async def _pump(self, source: AsyncIterator[bytes | str], http: aiohttp.ClientSession) -> None:
        """Returns when the source has ended. What it raises, but for OSError, is raised by `publish`."""
        try:
            async for chunk in source:
                self._input.add(chunk.encode() if isinstance(chunk, str) else chunk)
                while self._input.is_full:
                    await self._make_room(http)
        except OSError as exc:
            self._breakage = f"the input broke off: {exc.strerror or exc}"
            if self._query["dialect"] == "text":
                await self._until_in_log(http)
                return  # text has no mark of its end: a body that is closed would be a complete one
        self._input.close()

    def _source_ended(self, attempts: "asyncio.Task[None]") -> None:
        """A text that broke off is ended by a request of its own."""
        if not self._input.is_closed:
            attempts.cancel()

    async def _make_room(self, http: aiohttp.ClientSession) -> None:
        """Drop what is in the log; ask for it no more than so often."""
        self._input.drop_until(await self._offset_in_log(http))
        if self._input.is_full:
            await asyncio.sleep(self._settings.look_seconds)

    async def _until_in_log(self, http: aiohttp.ClientSession) -> None:
        """All but a character that is not whole; bounded, for nobody may be there to take it."""
        deadline = time.monotonic() + self._settings.give_up_seconds
        wanted = self._input.end - _BEGUN_CHARACTER
        while await self._offset_in_log(http) < wanted and time.monotonic() < deadline:  # noqa: ASYNC110  not our process
            await asyncio.sleep(self._settings.look_seconds)

    async def _offset_in_log(self, http: aiohttp.ClientSession) -> int:
        reply = await self._ask(http, "GET", "")
        offset = reply.body.get("offset")
        return offset if reply.status == 200 and isinstance(offset, int) else 0

    async def _end_broken(self, http: aiohttp.ClientSession) -> None:
        while True:
            reply = await self._ask(http, "POST", "/end", {"reason": "incomplete", "message": self._breakage})
            if reply.status == 200:
                self.result.reason, self.result.answer = "incomplete", reply.body
                return
            if "end" in reply.details:
                self._has_tried = True
                self._ended(reply)
                return
            if reply.is_final:
                raise PublishError(f"the gateway refused it: {reply.error.get('message') or reply.cause}")
            await self._pause(reply, is_moving=True)

    # ---- one attempt after the other -------------------------------------------------------------------------------

    async def _attempts(self, http: aiohttp.ClientSession) -> None:
        """Until the run has ended."""
        while not await self._attempt(http):
            pass

    async def _attempt(self, http: aiohttp.ClientSession) -> bool:
        """One request, then whatever it takes to try again. True: the run has ended."""
        try:
            reply = await self._stream(http)
        except InputGone as exc:
            raise PublishError(str(exc)) from exc
        if reply.status == 200:
            self.result.reason = str(reply.body.get("reason"))
            self.result.answer = reply.body
            return True
        if reply.details.get("reason") == "run_ended" or "end" in reply.details:
            return self._ended(reply)
        await self._after_failure(http, reply)
        return False

    def _ended(self, reply: Reply) -> bool:
        """By our own `run_end`, whose answer was lost, or by somebody else."""
        end = reply.details.get("end") or {}
        reason = str(end.get("reason") or reply.details.get("reason"))
        if reply.details.get("reason") == "run_ended" and not self._has_tried:
            raise PublishError("this run has ended before; publish under another id")
        self.result.reason, self.result.answer = reason, end
        self.result.seen = end.get("seen")
        return True

    async def _after_failure(self, http: aiohttp.ClientSession, reply: Reply) -> None:
        if reply.code == ErrorCode.PRODUCER_UNKNOWN:
            self._restart("Redis no longer knows this run: starting it again")
            return
        if reply.code == ErrorCode.CONFLICT and reply.details.get("reason") == "run_open" and not self._has_tried:
            raise PublishError("this run is open: somebody else publishes it; choose another id")
        is_fenced = reply.code == ErrorCode.FENCED
        if is_fenced and not self._late_attaches:
            raise PublishError("another publisher took over this run")
        if is_fenced:
            self._late_attaches -= 1
        elif reply.is_final and reply.code not in _ATTACH_AFTER and reply.details.get("reason") != "run_open":
            raise PublishError(f"the gateway refused it: {reply.error.get('message') or reply.cause}")
        is_quota = reply.code == ErrorCode.QUOTA_EXCEEDED  # nothing was opened: the run may be another one's
        self._has_tried = self._has_tried or (bool(reply.status) and not is_quota) or reply.is_unknown
        self.result.lost_writes += reply.code == ErrorCode.LOST_WRITES
        await self._pause(reply, is_moving=reply.code != ErrorCode.LOST_WRITES)
        if self._has_tried:
            await self._attach(http)

    async def _attach(self, http: aiohttp.ClientSession) -> None:
        while True:
            reply = await self._ask(http, "POST", "/attach")
            if reply.status == 200:
                self._epoch, self._offset = reply.body["epoch"], reply.body["offset"]
                self.result.attaches += 1
                return
            if reply.status == 404:
                self._restart("the run is not there: starting it again")
                return
            if "end" in reply.details:
                return  # the next attempt is told the same
            self._late_attaches += reply.is_unknown
            if reply.is_final:
                raise PublishError(f"the gateway refused it: {reply.error.get('message') or reply.cause}")
            await self._pause(reply, is_moving=True)

    def _restart(self, cause: str) -> None:
        if self._input.first:
            raise PublishError(f"{cause.partition(':')[0]}, and the beginning of the input is no longer held")
        self._on_trouble(cause)
        self._epoch, self._offset, self._has_tried = None, 0, False

    # ---- requests --------------------------------------------------------------------------------------------------

    async def _stream(self, http: aiohttp.ClientSession) -> Reply:
        """The whole rest of the input as one body."""
        query = dict(self._query)
        if self._epoch is not None:
            query |= {"epoch": str(self._epoch), "offset": str(self._offset)}
        url = run_url(self._round.url, self._session, self._run, "/stream", query)
        body = self._input.read_from(self._offset)
        began = time.monotonic()
        try:
            async with self._watch.request(), http.post(url, data=body) as response:
                reply = Reply.of(response.status, response.headers, await response.read())
        except aiohttp.ClientConnectorError as exc:
            return Reply(0, {}, str(exc))
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            reply = Reply(0, {}, str(exc) or "the gateway did nothing with the stream", is_unknown=True)
        if time.monotonic() - began > self._settings.stable_seconds:
            self._note_success()
        return reply

    async def _ask(
        self,
        http: aiohttp.ClientSession,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        base: str | None = None,
    ) -> Reply:
        url = run_url(base or self._round.url, self._session, self._run, path, {})
        timeout = aiohttp.ClientTimeout(total=self._settings.request_seconds)
        data = encode_json(body or {}) if method == "POST" else None
        try:
            async with http.request(method, url, data=data, timeout=timeout) as response:
                return Reply.of(response.status, response.headers, await response.read())
        except aiohttp.ClientConnectorError as exc:
            return Reply(0, {}, str(exc))
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            return Reply(0, {}, str(exc) or "no answer in time", is_unknown=True)

    async def _ask_another(self, http: aiohttp.ClientSession) -> Reply:
        """What the run's state is, of a gateway that does not have the stream."""
        return await self._ask(http, "GET", "", base=self._round.next_url)

    async def _pause(self, reply: Reply, *, is_moving: bool) -> None:
        """Before the next try, elsewhere when `is_moving`. Raises PublishError when nothing helped for too long."""
        message = reply.error.get("message") or reply.cause
        if reply.code == ErrorCode.QUOTA_EXCEEDED:  # no trouble, and no other gateway grants more
            is_moving, self._failing_since = False, None
        now = time.monotonic()
        self._failing_since = now if self._failing_since is None else self._failing_since
        if now - self._failing_since >= self._settings.give_up_seconds:
            raise PublishError(f"no gateway took it for {self._settings.give_up_seconds:g} s; the last: {message}")
        if is_moving:
            self._round.move()
        self._on_trouble(f"going on elsewhere: {message}" if is_moving else f"sending again: {message}")
        await asyncio.sleep(self._backoff.next_delay_seconds(reply.after_seconds or 0.0))

    def _note_success(self) -> None:
        self._failing_since = None
        self._backoff.reset()


async def _close(source: AsyncIterator[bytes | str]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        with suppress(Exception):
            await close()


__all__ = ["StreamPublisher", "StreamResult", "publish_stream"]
