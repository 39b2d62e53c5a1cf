"""One attempt to open a channel, from the token to the welcome: it leaves an open channel, or nothing."""

import asyncio
import random
from collections.abc import Callable

from relayrouter.channel import Circumstances
from relayrouter.credentials import Credentials, TokenUnavailable
from relayrouter.endings import Ending, broken
from relayrouter.gateway_round import GatewayRound
from relayrouter.handover import Handover
from relayrouter.options import Options
from relayrouter.receiver import Receiver
from relayrouter.running import OnControl, Running
from relayrouter.states import ChannelKind


class Attempts:
    """Goes round the gateways: `turn` after each one that did not do."""

    def __init__(
        self,
        options: Options,
        about: Circumstances,
        receiver: Receiver,
        handover: Handover,
        credentials: Credentials,
        client: Callable[[], str],
        rng: random.Random,
    ) -> None:
        self._options = options
        self._about = about
        self._receiver = receiver
        self._handover = handover
        self._credentials = credentials
        self._client = client
        self._round = GatewayRound(options.urls, rng)
        self.opened: set[Running] = set()
        """Everything that was not disposed of yet."""

    @property
    def url(self) -> str:
        """Of the next attempt."""
        return self._round.url

    def turn(self) -> None:
        self._round.move()

    async def open(
        self, kind: ChannelKind, replaces: str | None, retry: int, on_control: OnControl
    ) -> "Running | Ending":
        """A channel that was welcomed; or why not."""
        try:
            await self._credentials.fetch()
        except TokenUnavailable as exc:
            return broken(exc.message)
        self._about.http.base = self.url
        lane = self._receiver.place.enter()
        running = Running(kind, self.url, self._about, self._query(replaces, retry), lane, self.opened.discard)
        self.opened.add(running)
        seconds = self._options.timing.connect_timeout
        ending: Ending | None = None
        try:
            async with asyncio.timeout(seconds):
                ending = await running.open(self._receiver, self._handover, on_control)
        except TimeoutError:
            if not running.welcomed.done():
                is_silent = running.channel.was_answered
                ending = broken(f"no welcome within {seconds:g} s", is_transport=True) if is_silent else None
        finally:
            if not running.welcomed.done():
                running.dispose()
                self._receiver.place.leave(lane)
        if ending is None and not running.welcomed.done():
            return await running.channel.why_not()
        return ending if ending is not None else running

    def _query(self, replaces: str | None, retry: int) -> dict[str, str]:
        query = {"client": self._client()}
        cursor = self._about.position()
        if cursor is not None:
            query["cursor"] = cursor
        elif self._options.from_start:
            query["from"] = "start"
        if self._options.heartbeat is not None:
            query["heartbeat"] = f"{self._options.heartbeat:g}"
        if self._options.caps:
            query["caps"] = ",".join(self._options.caps)
        if self._options.rhythm:
            query["rhythm"] = "1"
        if retry:
            query["retry"] = str(retry)
        if replaces is not None:
            query["replaces"] = replaces
        return query


__all__ = ["Attempts"]
