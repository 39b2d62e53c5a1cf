"""The scripted server of one scenario: real sockets; every request is held until a step or a rule decides about it.

Must never answer a WebSocket, an event stream or a poll by itself. Called by play.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from sdk.conformance.channels import Exchange, is_asking
from sdk.conformance.http_wire import MAX_HEAD_BYTES, NotHttp, Reply, Request, error_reply, json_reply, read_request
from sdk.conformance.script_inbox import Declined, ScriptInbox
from sdk.conformance.script_log import Frame, Payload, ScriptLog, control_frame

LIMITS: Final = {"message_bytes": 65536, "frame_bytes": 16384, "unacked_bytes": 131072}
KINDS: Final = ("websocket", "probe", "sse", "poll", "history", "input", "control", "other")
Rule = Callable[[Exchange], Awaitable[None]]


def kind_of(request: Request) -> str:
    name = request.path.rpartition("/")[2]
    match request.method, name:
        case "GET", "ws":
            return "websocket" if request.is_upgrade else "probe"
        case "GET", "events":
            return "sse"
        case "GET", "messages":
            return "poll" if float(request.query.get("wait") or 0) > 0 else "history"
        case "POST", "input" | "control":
            return name
        case _:
            return "other"


class ScriptedServer:
    """`await start()`; `url`; `stop()` leaves nothing behind."""

    def __init__(self, log: ScriptLog, line: str, note: Callable[[str], None]) -> None:
        self.log = log
        self.line = line
        """`<epoch>.<fork>` of the log as it is now."""
        self.head = log.head
        """What of the log has been published."""
        self.inbox = ScriptInbox()
        self.exchanges: list[Exchange] = []
        self.rules: dict[str, Rule | None] = {}
        """Kind -> what is done with its requests; None: held."""
        self.changed = asyncio.Condition()
        self.ignores_tcp = False
        """Accept connections and never read from them."""
        self.accepted_connections = 0
        self.limits: dict[str, int] = dict(LIMITS)
        self._note = note
        self._held: list[Exchange] = []
        self._idents = itertools.count(1)
        self._servers: list[asyncio.Server] = []
        self._ports: list[int] = []
        self._handlers: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    # ---- its life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listens on two ports, as two addresses of one cluster. A second start takes the first one's ports."""
        ports = self._ports or [0, 0]
        self._servers = [
            await asyncio.start_server(self._on_connection, "127.0.0.1", port, limit=MAX_HEAD_BYTES) for port in ports
        ]
        self._ports = [server.sockets[0].getsockname()[1] for server in self._servers]

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self._ports]

    async def stop_listening(self) -> None:
        """Connections are refused from here on; those that are open stay."""
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()
        await asyncio.sleep(0)

    async def stop(self) -> None:
        await self.stop_listening()
        for exchange in self.exchanges:
            await exchange.stop()
        for writer in self._writers:
            with suppress(OSError, RuntimeError):
                writer.transport.abort()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    # ---- requests ----------------------------------------------------------------------------------------------

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        self._writers.add(writer)
        self.accepted_connections += 1
        try:
            if self.ignores_tcp:
                self._note("a connection is accepted, and nobody reads from it")
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                await asyncio.Event().wait()
            request = await read_request(reader)
            if request is not None:
                await self._on_request(request, reader, writer)
        except (NotHttp, OSError) as exc:
            self._note(f"no request: {exc!r}")
        except asyncio.CancelledError:
            pass  # the scenario is over; asyncio's own wrapper would log it
        finally:
            self._handlers.discard(task)
            self._writers.discard(writer)
            with suppress(OSError, RuntimeError):
                writer.close()

    async def _on_request(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kind = kind_of(request)
        ident = str(next(self._idents))
        exchange = Exchange(kind, request, reader, writer, self._note, at=time.monotonic(), ident=ident)
        exchange.on_message = self._on_message
        self._note(f"{exchange.name} <- {request.method} {request.raw_target} {_shown(request)}")
        self.exchanges.append(exchange)
        rule = self.rules[kind] if kind in self.rules else _OWN_RULES.get(kind)
        if rule is None:
            self._held.append(exchange)
        exchange.watch()
        await self._tell()
        if rule is _OWN_RULES.get(kind) and rule is not None:
            await self._answer_by_itself(exchange)
            await self._tell()
        elif rule is not None:
            await rule(exchange)
        await exchange.is_over.wait()

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def take(self, kind: str) -> Exchange:
        """The oldest held request of this kind whose client is still there."""
        async with self.changed:
            while True:
                for exchange in self._held:
                    if exchange.kind == kind and not exchange.client_has_left:
                        self._held.remove(exchange)
                        return exchange
                await self.changed.wait()

    def count(self, kind: str) -> int:
        return sum(exchange.kind == kind for exchange in self.exchanges)

    async def set_rule(self, kind: str, rule: Rule | None) -> None:
        """None: hold. What is held already is decided by a new rule."""
        self.rules[kind] = rule
        if rule is None:
            return
        held = [exchange for exchange in self._held if exchange.kind == kind]
        self._held = [exchange for exchange in self._held if exchange.kind != kind]
        for exchange in held:
            await rule(exchange)

    # ---- what it does by itself --------------------------------------------------------------------------------

    async def _answer_by_itself(self, exchange: Exchange) -> None:
        match exchange.kind:
            case "probe":
                exchange.reply(json_reply({"ok": True}))
            case "history":
                exchange.reply(self._history(exchange.request))
            case "input":
                exchange.reply(self._input(exchange.request))
            case "control":
                body = exchange.request.json()
                exchange.reply(json_reply({"what": body.get("kind"), "id": body.get("id"), "run": body.get("run")}))
            case _:
                exchange.reply(error_reply(404, "not_found"))

    def _history(self, request: Request) -> Reply:
        since = request.query.get("since", "")
        position = int(since.rpartition(".")[2] or 0)
        frames, after = self.log.page(min(position, self.head), int(request.query.get("limit") or 1000))
        frames = [frame for frame in frames if frame["seq"] <= self.head]
        after = frames[-1]["seq"] if frames else position
        body = {
            "connection": None,
            "frames": frames,
            "cursor": self.cursor(after),
            "head": self.head,
            "more": after < self.head,
            "close": None,
        }
        return json_reply(body, headers={"ETag": f'"{after}-{self.head}"'})

    def _input(self, request: Request) -> Reply:
        body = request.json()
        taken = self.inbox.offer(str(body["client"]), int(body["seq"]), body["payload"])
        if isinstance(taken, Declined):
            return error_reply(409, taken.code, details={"expected": taken.expected})
        return json_reply({"what": "input", "seq": body["seq"], "repeat": taken.is_repeat})

    async def _on_message(self, exchange: Exchange, frame: Frame) -> None:
        """A frame on a WebSocket."""
        payload = frame.get("payload")
        if frame.get("type") == "text":
            self._on_input(exchange, frame)
            await self._tell()
        elif isinstance(payload, dict) and payload.get("kind") == "ping" and exchange.habits.pong:
            echoed = {name: payload[name] for name in ("id", "t") if name in payload}
            await asyncio.sleep(exchange.habits.pong_delay_ms / 1000)
            exchange.send(self.control({"kind": "pong", **echoed}))
        elif is_asking(payload) and exchange.habits.control == "accept":
            assert isinstance(payload, dict)
            answer = {"kind": "accepted", "what": payload.get("kind", payload.get("action"))}
            echoed = {name: payload[name] for name in ("id", "run", "ask") if name in payload}
            exchange.send(self.control(answer | echoed))

    def _on_input(self, exchange: Exchange, frame: Frame) -> None:
        if exchange.habits.input == "ignore":
            return
        client, number = exchange.request.query.get("client", ""), int(frame.get("seq") or 0)
        taken = self.inbox.offer(client, number, frame.get("payload") or {})
        if exchange.habits.input == "drop":
            return
        if isinstance(taken, Declined):
            refusal = {"code": taken.code, "message": f"scripted: {taken.code}", "retryable": False}
            more = {"what": "input", "seq": number, "expected": taken.expected}
            exchange.send(self.control({"kind": "error", **refusal, **more}))
        else:
            exchange.send(self.control({"kind": "accepted", "what": "input", "seq": number}))

    # ---- what it says ------------------------------------------------------------------------------------------

    def cursor(self, seq: int) -> str:
        return f"{self.line}.{seq}"

    def control(self, payload: Payload) -> Frame:
        return control_frame(self.log.session, payload)

    def welcome(self, exchange: Exchange, fields: dict[str, Any]) -> Frame:
        """`fields` overrule; without them a fresh client at the beginning of the log."""
        client = exchange.request.query.get("client", "")
        payload = {
            "kind": "welcome",
            "protocol": 1,
            "connection": exchange.connection,
            "client": client,
            "gateway": "gw-0-0011223344556677",
            "cursor": self.cursor(0),
            "head": self.head,
            "resumed": "full",
            "input_seq": self.inbox.last(client),
            "heartbeat": 20.0,
            "limits": self.limits,
        }
        return self.control({**payload, **fields})


def _shown(request: Request) -> str:
    """The headers that matter, for a transcript."""
    names = ("authorization", "sec-websocket-protocol", "last-event-id", "if-none-match", "origin", "accept")
    shown = {name: request.headers[name] for name in names if name in request.headers}
    body = request.body[:200].decode(errors="replace")
    return f"{shown} {body}".strip()


async def _by_itself(_exchange: Exchange) -> None:
    """A mark: see ScriptedServer._answer_by_itself."""


_OWN_RULES: Final[dict[str, Rule]] = dict.fromkeys(("probe", "history", "input", "control", "other"), _by_itself)

__all__ = ["KINDS", "LIMITS", "Rule", "ScriptedServer", "kind_of"]
