"""One client of the oracle: keeps its cursor, comes back with full jitter, may be slow or move, writes down everything.

Must never hide what a server did: each socket is judged on its own (account.SocketTrack). Called by oracle.
"""

import asyncio
import json
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from loadtest.questions import Questions
from loadtest.reader_spec import ReaderSpec
from loadtest.record import Record
from loadtest.track import SocketTrack
from loadtest.truth import Truth
from loadtest.wire import Broken, Frame, Op, Refused, WebSocket

ACK_SECONDS: Final = 0.25
ACK_BYTES: Final = 32 * 1024
BACKOFF_SECONDS: Final = 0.1
MAX_BACKOFF_SECONDS: Final = 1.5
FINAL_CODES: Final = frozenset({1002, 1003, 1007, 1008, 1009, 4401, 4403, 4404, 4409})
"""Closes after which a client stays away (protocol.md 1)."""
FINAL_STATUSES: Final = frozenset({400, 401, 403, 404})


@dataclass(slots=True, eq=False)
class _Socket:
    ws: WebSocket
    track: SocketTrack
    url: str
    connection: str = ""
    gateway: str = ""
    acked_seq: int = 0
    acked_at_bytes: int = 0
    close_code: int = 0
    close_reason: str = ""
    return_after_ms: int = 0


@dataclass(slots=True)
class Reader:
    spec: ReaderSpec
    rng: random.Random
    record: Record = field(init=False)
    questions: Questions = field(init=False)
    ended: str = ""
    """Why it will not come back; empty while it would."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _sockets: list[_Socket] = field(default_factory=list)
    _reading: asyncio.Event = field(default_factory=asyncio.Event)
    _empty: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _attempts: int = 0
    _is_first: bool = True
    _last_end: _Socket | None = None
    _moves: int = 0
    """New sockets under way: the old one may be closed before their answer is read."""

    def __post_init__(self) -> None:
        self.record = Record(self.spec.session, interrupted=dict.fromkeys(self.spec.interrupted_runs, 0))
        self.questions = Questions(self.record, self.newest)
        self._reading.set()

    # ---- its life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._spawn(self._run())
        if self.spec.is_acking:
            self._spawn(self._ack_on_time())
        if self.spec.move_every_ms:
            self._spawn(self._move_on_time())

    def _spawn(self, coro: Any) -> None:
        task = asyncio.create_task(coro)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Leave in order: a close frame, then the end."""
        self.ended = self.ended or "stopped"
        tasks = list(self._tasks)
        for socket in self._sockets:
            socket.ws.send_close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for socket in self._sockets:
            await socket.ws.shut()
        self._sockets.clear()

    async def _run(self) -> None:
        while not self.ended:
            after_seconds = 0.0
            try:
                await self._open(self._pick_url(), self.spec.replaces if self._is_first else "")
            except Refused as exc:
                self._refused(exc)
            except (Broken, OSError) as exc:
                self.record.counts["connect_failures"] += 1
                self.record.note("connect_failed", cause=type(exc).__name__)
            else:
                await self._empty.wait()
                after_seconds = self._after_end()
            bound = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** min(self._attempts, 6))
            self._attempts += 1
            await asyncio.sleep(after_seconds + self.rng.uniform(0, bound))
        self.changed.set()

    def _refused(self, exc: Refused) -> None:
        self.record.refusals[str(exc.answer.status)] += 1
        self.record.note("refused", status=exc.answer.status, code=exc.answer.error_code)
        if exc.answer.status in (429, 503) and "retry-after" not in exc.answer.headers:
            self.record.findings.add("bad_refusal", f"{exc.answer.status} without Retry-After")
        if exc.answer.status in FINAL_STATUSES:
            self.ended = f"refused {exc.answer.status}"

    def _after_end(self) -> float:
        """Seconds that the last socket asked for before a return."""
        if self.spec.is_staying_away:
            self.ended = self.ended or "socket ended"
        last = self._last_end
        return last.return_after_ms / 1000 if last is not None and last.close_code == 1012 else 0.0

    def _pick_url(self) -> str:
        return self.rng.choice(self.spec.urls)

    # ---- sockets -----------------------------------------------------------------------------------------------

    async def _open(self, url: str, replaces: str = "") -> _Socket:
        place = self.record.view.place or self.spec.first_place
        retries = max(1, self._attempts) if not self._is_first and not replaces else 0
        ws = await WebSocket.open(
            url.replace("ws://", "http://"),
            self.spec.path(place, replaces, retries),
            headers={"Authorization": f"Bearer {self.spec.token}"} if self.spec.token else {},
            receive_buffer_bytes=self.spec.receive_buffer_bytes,
        )
        if self.record.view.place is None and place is not None:
            self.record.view.place, self.record.view.began_at = place, place.seq
        socket = _Socket(ws, SocketTrack(place, self.record.findings), url)
        self._is_first = False
        self.record.counts["connects"] += 1
        self._sockets.append(socket)
        self._empty.clear()
        self._spawn(self._read(socket))
        return socket

    async def _read(self, socket: _Socket) -> None:
        try:
            while True:
                await self._reading.wait()
                began = time.monotonic()
                before = socket.ws.bytes_rcvd
                frames = await socket.ws.frames()
                is_over = any(self._take(socket, frame) for frame in frames)
                if frames:
                    self.changed.set()
                if is_over:
                    break
                self._ack(socket, ACK_BYTES)
                if self.spec.bytes_per_second:
                    due = (socket.ws.bytes_rcvd - before) / self.spec.bytes_per_second
                    await asyncio.sleep(max(0.0, due - (time.monotonic() - began)))
        except Broken as exc:
            socket.close_code = socket.close_code or 1006
            socket.close_reason = socket.close_reason or str(exc)
        except (KeyError, ValueError, TypeError) as exc:
            self.record.findings.add("bad_frame", f"{type(exc).__name__} {exc}")
            socket.close_code = 1002
        finally:
            self._leave(socket)
        await socket.ws.shut()

    def _leave(self, socket: _Socket) -> None:
        if socket in self._sockets:
            self._sockets.remove(socket)
        code = socket.close_code or 1006
        self.record.closed(code, socket.close_reason, socket.gateway)
        # A replaced socket's end is no end of the client (protocol.md 1: `moved` with a newer one).
        if code in FINAL_CODES and not self._sockets:
            self.ended = self.ended or f"closed {code}"
        self._last_end = socket
        self._note_empty()
        self.changed.set()

    def _note_empty(self) -> None:
        if not self._sockets and not self._moves:
            self._empty.set()

    def _take(self, socket: _Socket, frame: Frame) -> bool:
        """True: the socket is over."""
        match frame.op:
            case Op.TEXT:
                self._on_control(
                    socket, self.record.message(socket.track, json.loads(frame.payload), len(frame.payload))
                )
            case Op.PING:
                socket.ws.send(Op.PONG, frame.payload)
                self.record.counts["pings"] += 1
            case Op.CLOSE:
                socket.close_code, socket.close_reason = frame.close_code, frame.close_reason
                with suppress(OSError):
                    socket.ws.send(Op.CLOSE, frame.payload[:2])
                return True
            case _:
                pass
        return False

    def _on_control(self, socket: _Socket, payload: dict[str, Any]) -> None:
        match payload.get("kind"):
            case "welcome":
                socket.connection, socket.gateway = payload["connection"], payload["gateway"]
                self._attempts = 0
            case "reconnect_later":
                socket.return_after_ms = payload["after_ms"]
            case "accepted" | "error":
                self.questions.settle(payload)
            case _:
                pass

    # ---- acks, moves, faults of its own ------------------------------------------------------------------------

    def _ack(self, socket: _Socket, min_bytes: int) -> None:
        place = socket.track.place
        if not self.spec.is_acking or place is None or place.seq <= socket.acked_seq:
            return
        if socket.ws.bytes_rcvd - socket.acked_at_bytes >= min_bytes:
            socket.acked_seq, socket.acked_at_bytes = place.seq, socket.ws.bytes_rcvd
            socket.ws.send_text(json.dumps({"type": "control", "payload": {"kind": "ack", "seq": place.seq}}))
            self.record.counts["acks"] += 1

    async def _ack_on_time(self) -> None:
        while True:
            await asyncio.sleep(ACK_SECONDS)
            for socket in self._sockets if self._reading.is_set() else ():
                self._ack(socket, 0)

    async def _move_on_time(self) -> None:
        while not self.ended:
            await asyncio.sleep(self.spec.move_every_ms / 1000)
            await self.move()

    async def move(self, url: str = "") -> bool:
        """Make before break: a new socket that replaces the newest one. False: it did not open."""
        current = self._sockets[-1] if self._sockets else None
        if current is None or not current.connection:
            return False
        self.record.counts["moves"] += 1
        self._moves += 1
        try:
            await self._open(url or self._pick_url(), replaces=current.connection)
        except Refused as exc:
            self.record.refusals[str(exc.answer.status)] += 1
            return False
        except (Broken, OSError):
            self.record.counts["connect_failures"] += 1
            return False
        finally:
            self._moves -= 1
            self._note_empty()
        return True

    def hold(self) -> None:
        """Stop reading; what is open stays open."""
        self._reading.clear()

    def go_on(self) -> None:
        self._reading.set()

    def drop(self, *, newest_only: bool = False) -> None:
        """Reset its sockets without a word."""
        for socket in self._sockets[-1:] if newest_only else list(self._sockets):
            socket.ws.reset()
            self.record.counts["drops"] += 1

    def newest(self) -> WebSocket | None:
        """The socket that was welcomed last, if it is open."""
        return self._sockets[-1].ws if self._sockets and self._sockets[-1].connection else None

    def say(self, message: dict[str, Any]) -> None:
        """One message on the newest socket."""
        self._sockets[-1].ws.send_text(json.dumps(message))

    # ---- results -----------------------------------------------------------------------------------------------

    def result(self, truth: Truth | None, head: int | None) -> dict[str, Any]:
        return {
            "name": self.spec.name,
            **self.record.result(truth, head),
            "ended": self.ended,
            "open_sockets": len(self._sockets),
            "connection": self._sockets[-1].connection if self._sockets else "",
        }


__all__ = ["Reader", "ReaderSpec"]
