"""One client of the oracle: keeps its cursor, comes back with full jitter, may be slow or move, writes down everything.

Must never hide what a server did: each socket is judged on its own (account.SocketTrack). Called by oracle.
"""

import asyncio
import json
import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from loadtest.account import Findings, Place, SocketTrack, Truth, View, digest
from loadtest.wire import Broken, Frame, Op, Refused, WebSocket

ACK_SECONDS: Final = 0.25
ACK_BYTES: Final = 32 * 1024
BACKOFF_SECONDS: Final = 0.1
MAX_BACKOFF_SECONDS: Final = 1.5
FINAL_CODES: Final = frozenset({1002, 1003, 1007, 1008, 1009, 4401, 4403, 4404, 4409})
"""Closes after which a client stays away (protocol.md 1)."""
FINAL_STATUSES: Final = frozenset({400, 401, 403, 404})


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """As the driver asks for it."""

    name: str
    session: str
    urls: tuple[str, ...]
    client: str = ""
    begins: str = "start"
    cursor: str | None = None
    last_received_seq: int | None = None
    is_acking: bool = False
    token: str | None = None
    bytes_per_second: int = 0
    """0: as fast as it comes."""
    receive_buffer_bytes: int = 0
    move_every_ms: int = 0
    replaces: str = ""
    """Connection id that its first socket replaces."""
    is_staying_away: bool = False
    """Does not come back when its socket ends."""

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> "ReaderSpec":
        return cls(**{**fields, "urls": tuple(fields["urls"])})


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
    findings: Findings = field(default_factory=Findings)
    counts: Counter[str] = field(default_factory=Counter)
    closes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    resumed: list[str] = field(default_factory=list)
    gateways: list[str] = field(default_factory=list)
    timeline: list[dict[str, Any]] = field(default_factory=list)
    """Notable events with their monotonic time: drains and ends."""
    latencies_ms: list[float] = field(default_factory=list)
    ended: str = ""
    """Why it will not come back; empty while it would."""
    view: View = field(init=False)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _sockets: list[_Socket] = field(default_factory=list)
    _reading: asyncio.Event = field(default_factory=asyncio.Event)
    _empty: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _attempts: int = 0
    _last_timestamp: int = 0
    _is_first: bool = True
    _last_end: _Socket | None = None
    _moves: int = 0
    """New sockets under way: the old one may be closed before their answer is read."""

    def __post_init__(self) -> None:
        self.view = View(self.findings)
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
                self.counts["connect_failures"] += 1
                self._note("connect_failed", cause=type(exc).__name__)
            else:
                await self._empty.wait()
                after_seconds = self._after_end()
            bound = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** min(self._attempts, 6))
            self._attempts += 1
            await asyncio.sleep(after_seconds + self.rng.uniform(0, bound))
        self.changed.set()

    def _refused(self, exc: Refused) -> None:
        self.refusals[str(exc.answer.status)] += 1
        self._note("refused", status=exc.answer.status, code=exc.answer.error_code)
        if exc.answer.status in (429, 503) and "retry-after" not in exc.answer.headers:
            self.findings.add("bad_refusal", f"{exc.answer.status} without Retry-After")
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
        place = self.view.place
        query: dict[str, Any] = {"client": self.spec.client or self.spec.name}
        if place is not None:
            query["cursor"] = str(place)
        elif self.spec.cursor is not None:
            place = Place.parse(self.spec.cursor)
            query["cursor"] = self.spec.cursor
        elif self.spec.last_received_seq is not None:
            query["last_received_seq"] = self.spec.last_received_seq
        else:
            query["from"] = self.spec.begins
        if self.spec.is_acking:
            query["ack"] = 1
        if replaces:
            query["replaces"] = replaces
        if not self._is_first and not replaces:
            query["retry"] = max(1, self._attempts)
        headers = {"Authorization": f"Bearer {self.spec.token}"} if self.spec.token else {}
        ws = await WebSocket.open(
            url.replace("ws://", "http://"),
            f"/v1/sessions/{quote(self.spec.session, safe='')}/ws?{urlencode(query)}",
            headers=headers,
            receive_buffer_bytes=self.spec.receive_buffer_bytes,
        )
        if self.view.place is None and place is not None:
            self.view.place, self.view.began_at = place, place.seq
        socket = _Socket(ws, SocketTrack(place, self.findings), url)
        self._is_first = False
        self.counts["connects"] += 1
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
            self.findings.add("bad_frame", f"{type(exc).__name__} {exc}")
            socket.close_code = 1002
        finally:
            self._leave(socket)
        await socket.ws.shut()

    def _leave(self, socket: _Socket) -> None:
        if socket in self._sockets:
            self._sockets.remove(socket)
        code = socket.close_code or 1006
        self.closes[str(code)] += 1
        self._note("closed", code=code, reason=socket.close_reason, gateway=socket.gateway)
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
                self._on_message(socket, json.loads(frame.payload), len(frame.payload))
            case Op.PING:
                socket.ws.send(Op.PONG, frame.payload)
                self.counts["pings"] += 1
            case Op.CLOSE:
                socket.close_code, socket.close_reason = frame.close_code, frame.close_reason
                with suppress(OSError):
                    socket.ws.send(Op.CLOSE, frame.payload[:2])
                return True
            case _:
                pass
        return False

    def _on_message(self, socket: _Socket, message: dict[str, Any], size: int) -> None:
        if message["session_id"] != self.spec.session:
            self.findings.add("foreign", f"a frame of session {message['session_id']!r}")
            return
        payload = message["payload"]
        if message["type"] == "control":
            self._on_control(socket, payload)
            return
        self.counts["text_frames"] += 1
        self.counts["text_bytes"] += size
        first, seq = message.get("first_seq", message["seq"]), message["seq"]
        self.counts["merged_frames"] += first != seq
        self.latencies_ms.append(time.time() * 1000 - message["timestamp"])
        if not socket.track.text(first, seq):
            return
        if self.view.place is None or seq > self.view.place.seq:
            if message["timestamp"] < self._last_timestamp:
                self.findings.add("bad_timestamp", f"seq {seq}: {message['timestamp']} after {self._last_timestamp}")
            self._last_timestamp = message["timestamp"]
        self.view.text(message)

    def _on_control(self, socket: _Socket, payload: dict[str, Any]) -> None:
        kind = payload["kind"]
        self.controls[kind] += 1
        match kind:
            case "welcome":
                socket.connection, socket.gateway = payload["connection"], payload["gateway"]
                socket.track.welcome(payload["cursor"])
                self.view.welcome(Place.parse(payload["cursor"]))
                self.resumed.append(payload["resumed"])
                self.gateways.append(payload["gateway"])
                self._attempts = 0
                self._note("welcome", gateway=payload["gateway"], resumed=payload["resumed"])
            case "forked":
                self.view.forked(socket.track.forked(payload["cursor"]), payload["base"])
            case "gap":
                self.view.gap(socket.track.gap(payload), payload.get("runs"))
                self._note("gap", **{k: payload[k] for k in ("first", "last", "reason")})
            case "reconnect_later":
                socket.return_after_ms = payload["after_ms"]
                self._note("reconnect_later", after_ms=payload["after_ms"])
            case "error":
                self.errors[payload["code"]] += 1
            case _:
                pass

    def _note(self, what: str, **fields: Any) -> None:
        self.timeline.append({"at": time.monotonic(), "what": what, **fields})

    # ---- acks, moves, faults of its own ------------------------------------------------------------------------

    def _ack(self, socket: _Socket, min_bytes: int) -> None:
        place = socket.track.place
        if not self.spec.is_acking or place is None or place.seq <= socket.acked_seq:
            return
        if socket.ws.bytes_rcvd - socket.acked_at_bytes >= min_bytes:
            socket.acked_seq, socket.acked_at_bytes = place.seq, socket.ws.bytes_rcvd
            socket.ws.send_text(json.dumps({"type": "control", "payload": {"kind": "ack", "seq": place.seq}}))
            self.counts["acks"] += 1

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
        self.counts["moves"] += 1
        self._moves += 1
        try:
            await self._open(url or self._pick_url(), replaces=current.connection)
        except Refused as exc:
            self.refusals[str(exc.answer.status)] += 1
            return False
        except (Broken, OSError):
            self.counts["connect_failures"] += 1
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
            self.counts["drops"] += 1

    def say(self, message: dict[str, Any]) -> None:
        """One message on the newest socket."""
        self._sockets[-1].ws.send_text(json.dumps(message))

    # ---- results -----------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        return self.view.place.seq if self.view.place is not None else -1

    @property
    def open_sockets(self) -> int:
        return len(self._sockets)

    def result(self, truth: Truth | None, head: int | None) -> dict[str, Any]:
        findings = Findings(Counter(self.findings.counts), list(self.findings.details))
        if head is not None and self.position < head:
            findings.add("lost", f"stands at {self.position}, the head is {head}", head - self.position)
        for frame in self.view.applied if truth is not None else ():
            truth.compare(frame, findings)  # type: ignore[union-attr]
        return {
            "name": self.spec.name,
            "findings": {kind: count for kind, count in findings.counts.items() if count},
            "details": findings.details,
            "gaps": [gap.as_dict() for gap in self.view.gaps],
            "forks": self.view.forks,
            "position": self.position,
            "line": self.view.place.line if self.view.place is not None else "",
            "began_at": self.view.began_at,
            "missing": self.view.missing(),
            "applied": sum(frame.seq - frame.first + 1 for frame in self.view.applied),
            "overlaps": self.view.overlaps,
            "voided": self.view.voided,
            "digests": {run: digest(text) for run, text in self.view.texts("delta").items()},
            "counts": dict(self.counts),
            "closes": dict(self.closes),
            "refusals": dict(self.refusals),
            "controls": dict(self.controls),
            "errors": dict(self.errors),
            "resumed": self.resumed,
            "gateways": self.gateways,
            "timeline": self.timeline,
            "latencies_ms": self.latencies_ms,
            "ended": self.ended,
            "open_sockets": self.open_sockets,
            "connection": self._sockets[-1].connection if self._sockets else "",
        }


__all__ = ["Reader", "ReaderSpec"]
