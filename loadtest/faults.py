"""A TCP proxy in front of Redis that breaks exactly what a test asks for, and counts that it did.

Understands RESP as far as needed: which link is a subscription, one pub/sub message, one reply. Everything else passes
byte for byte. Lives in the test's own loop.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Flag, auto
from typing import Final

from loadtest.resp_stream import RespCutter, bulks

READ_BYTES: Final = 64 * 1024
Predicate = Callable[[bytes], bool]


class Links(Flag):
    """Which connections a fault is for."""

    COMMANDS = auto()
    SUBSCRIPTIONS = auto()
    ALL = COMMANDS | SUBSCRIPTIONS


@dataclass(slots=True, eq=False)
class _LostReply:
    """A fault that waits for its command, or has one and waits for the reply."""

    matches: Predicate
    is_awaiting_reply: bool = False


class _Link:
    """One connection of a gateway to the server."""

    def __init__(self, proxy: "RedisProxy", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._server_writer: asyncio.StreamWriter | None = None
        self.kind = Links.COMMANDS
        self.is_ended = False
        self._commands = RespCutter()
        self._replies = RespCutter()
        self._asked: list[_LostReply | None] = []
        """One for each command without a reply yet."""
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        self._task = asyncio.current_task()
        try:
            host, port = self._proxy.target
            server_reader, self._server_writer = await asyncio.open_connection(host, port)
            # Two plain tasks: whichever side ends first ends both.
            ways = [
                asyncio.create_task(self._pump(self._reader, self._server_writer, self._to_server)),
                asyncio.create_task(self._pump(server_reader, self._writer, self._to_client)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            self._proxy.counts["unreachable"] += 1
        finally:
            self.reset()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, look: Callable[[bytes], bytes]
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                data = b"" if self.is_ended else look(data)
                await self._proxy.passage(self.kind)
                if self.is_ended:
                    return
                writer.write(data)
                await writer.drain()

    def _to_server(self, data: bytes) -> bytes:
        for command in self._commands.feed(data):
            words = bulks(command)
            name = words[0].upper() if words else b""
            if name in (b"SUBSCRIBE", b"SSUBSCRIBE", b"PSUBSCRIBE"):
                self.kind = Links.SUBSCRIPTIONS
                self._proxy.counts["subscriptions"] += 1
            self._asked.append(self._proxy.fault_of_command(command))
        return data

    def _to_client(self, data: bytes) -> bytes:
        passing = []
        for value in self._replies.feed(data):
            if self.kind is Links.SUBSCRIPTIONS and (words := bulks(value))[:1] == [b"message"]:
                passing += self._proxy.fate_of_message(value, words[2])
                continue
            fault = self._asked.pop(0) if self._asked else None
            if fault is not None and self._proxy.loses(fault):
                # It took effect; nobody will ever hear of it.
                self.reset()
                return b""
            passing.append(value)
        return b"".join(passing)

    def reset(self) -> None:
        """End both sides at once, as a dead host does not but a firewall does."""
        self.is_ended = True
        for fault in filter(None, self._asked):
            # Not hit: this link ends for another reason, and the command may not have reached the server.
            fault.is_awaiting_reply = False
        self._asked.clear()
        for writer in (self._writer, self._server_writer):
            if writer is not None and not writer.is_closing():
                sock = writer.get_extra_info("socket")
                with suppress(OSError, AttributeError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                writer.transport.abort()

    def end(self) -> None:
        self.reset()
        if self._task is not None:
            self._task.cancel()


class RedisProxy:
    """Listens on a free port of loopback. `counts` proves which faults hit."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        """(host, port); a change is for new connections, `cut` ends the old ones."""
        self.counts: Counter[str] = Counter()
        self.is_refusing = False
        self.delay_seconds = 0.0
        self.subscribe_delay_seconds = 0.0
        self.copies = 1
        """How often each pub/sub message is delivered."""
        self._stalled = Links(0)
        self._passable = asyncio.Event()
        self._passable.set()
        self._drops: list[Predicate] = []
        self._lost_replies: list[_LostReply] = []
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.hit = asyncio.Event()
        """Set when a one-time fault has hit."""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self.resume()
        for link in list(self._links):
            link.end()
        await asyncio.sleep(0)
        if self._server is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_refusing:
            self.counts["refused"] += 1
            writer.transport.abort()
            return
        self.counts["connections"] += 1
        link = _Link(self, reader, writer)
        self._links.add(link)
        try:
            await link.run()
        except asyncio.CancelledError:
            if self._server is not None and self._server.is_serving():
                raise
        finally:
            self._links.discard(link)

    def heal(self) -> None:
        """No fault is left, and nothing is counted yet."""
        self.is_refusing = False
        self.delay_seconds = self.subscribe_delay_seconds = 0.0
        self.copies = 1
        self._drops.clear()
        self._lost_replies.clear()
        self.hit.clear()
        self.counts.clear()
        self.resume()

    # ---- faults ------------------------------------------------------------------------------------------------

    def cut(self, links: Links = Links.ALL) -> int:
        """Reset the open connections; new ones are let in unless `is_refusing`."""
        doomed = [link for link in self._links if link.kind in links]
        for link in doomed:
            link.reset()
        self.counts["cuts"] += len(doomed)
        return len(doomed)

    def stall(self, links: Links = Links.ALL) -> None:
        """Nothing passes in either direction, nothing is closed: a half-open link."""
        self._stalled |= links
        self._passable.clear()
        self.counts["stalls"] += 1

    def resume(self) -> None:
        self._stalled = Links(0)
        self._passable.set()

    def drop_message(self, predicate: Predicate) -> None:
        """The next pub/sub message that matches never arrives. Each call drops exactly one."""
        self.hit.clear()
        self._drops.append(predicate)

    async def all_hit(self) -> None:
        """Returns when every one-time fault that was asked for has hit."""
        while self._drops or self._lost_replies:
            self.hit.clear()
            await self.hit.wait()

    def lose_reply(self, predicate: Predicate) -> None:
        """The next command that matches takes effect, but its connection ends before the reply comes back.

        Where that connection ends earlier, the repeat of the command is hit. Each call loses exactly one.
        """
        self.hit.clear()
        self._lost_replies.append(_LostReply(predicate))

    # ---- asked by links ----------------------------------------------------------------------------------------

    async def passage(self, kind: Links) -> None:
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        if self.subscribe_delay_seconds and kind is Links.SUBSCRIPTIONS:
            await asyncio.sleep(self.subscribe_delay_seconds)
        while kind in self._stalled:
            self.counts["stalled_reads"] += 1
            self._passable.clear()
            await self._passable.wait()

    def fault_of_command(self, command: bytes) -> _LostReply | None:
        for fault in self._lost_replies:
            if not fault.is_awaiting_reply and fault.matches(command):
                fault.is_awaiting_reply = True
                return fault
        return None

    def loses(self, fault: _LostReply) -> bool:
        """False: healed meanwhile."""
        if fault not in self._lost_replies:
            return False
        self._lost_replies.remove(fault)
        self.counts["replies_lost"] += 1
        self.hit.set()
        return True

    def fate_of_message(self, raw: bytes, payload: bytes) -> list[bytes]:
        for predicate in self._drops:
            if predicate(payload):
                self._drops.remove(predicate)
                self.counts["messages_dropped"] += 1
                self.hit.set()
                return []
        if self.copies > 1 and payload.startswith(b"1m"):
            self.counts["messages_doubled"] += 1
            return [raw] * self.copies
        return [raw]


def is_message_of(*parts: bytes) -> Predicate:
    """A bus message of kind `1m` that contains all these bytes."""
    return lambda payload: payload.startswith(b"1m") and all(part in payload for part in parts)


__all__ = ["Links", "Predicate", "RedisProxy", "is_message_of"]
