"""How requests are answered: the scenario's words made bytes, for one `take` step and for a rule alike."""

import asyncio
import json
from typing import Any

from sdk.conformance import ws_wire
from sdk.conformance.channels import Exchange
from sdk.conformance.http_wire import Reply, error_reply, html_reply, json_reply
from sdk.conformance.script_log import BadScenario, Frame, Span
from sdk.conformance.server import Rule, ScriptedServer


def reply_of(fields: dict[str, Any]) -> Reply:
    """`status` with one of `code` (a refusal of the gateway), `html`, `json`; `headers`, `details`."""
    status, headers = fields.get("status", 200), {str(k): str(v) for k, v in fields.get("headers", {}).items()}
    if "code" in fields:
        return error_reply(status, fields["code"], headers, fields.get("details"))
    if fields.get("html"):
        return html_reply(status, headers)
    if "json" in fields:
        return json_reply(fields["json"], status, headers)
    return Reply(status, headers)


class Answers:
    """Of one scenario."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._players: dict[Exchange, asyncio.Task[None]] = {}

    def frames(self, items: list[Any], exchange: Exchange) -> list[tuple[Frame | str | bytes, str | None]]:
        """What to send, each with the cursor after it where it has one."""
        found: list[tuple[Frame | str | bytes, str | None]] = []
        for item in items:
            found += self._frame(item, exchange)
        return found

    def _frame(self, item: Any, exchange: Exchange) -> list[tuple[Frame | str | bytes, str | None]]:
        server = self._server
        match item:
            case {"log": span}:
                return [(frame, server.cursor(frame["seq"])) for frame in server.log.frames(Span.parse(span))]
            case {"merged": span}:
                frame = server.log.merged(Span.parse(span))
                return [(frame, server.cursor(frame["seq"]))]
            case {"welcome": dict(fields)}:
                frame = server.welcome(exchange, fields)
                return [(frame, frame["payload"]["cursor"])]
            case {"control": dict(payload)}:
                return [(server.control(payload), payload.get("cursor"))]
            case {"text": dict(payload), "seq": seq}:
                frame = server.log.envelope(seq, payload, item.get("first_seq")) | item.get("fields", {})
                return [(frame, server.cursor(seq))]
            case {"raw": str(text)}:
                return [(text, None)]
            case {"array": list(items)}:
                found = [frame for frame, _ in self.frames(items, exchange) if not isinstance(frame, bytes)]
                texts = [frame if isinstance(frame, str) else _json(frame) for frame in found]
                return [(f"[{','.join(texts)}]", None)]
            case {"size_bytes": int(size)}:
                return [("x" * size, None)]
            case {"binary_bytes": int(size)}:
                return [(bytes(size), None)]
            case _:
                raise BadScenario(f"no such frame: {item!r}")

    async def send(self, exchange: Exchange, items: list[Any], bytes_per_second: float | None = None) -> None:
        for frame, cursor in self.frames(items, exchange):
            if isinstance(frame, dict) and bytes_per_second is None:
                exchange.send(frame, cursor)
                continue
            if isinstance(frame, bytes):
                data = ws_wire.encode(ws_wire.BINARY, frame)
            elif isinstance(frame, str):
                exchange.note(f"-> (raw) {frame[:200]}")
                data = ws_wire.encode(ws_wire.TEXT, frame.encode()) if exchange.kind == "websocket" else frame.encode()
            else:
                exchange.note(f"-> (slowly) {str(frame)[:200]}")
                data = exchange.encode(_json(frame), frame, cursor)
            if bytes_per_second is None:
                exchange.write(data)
            else:
                await exchange.write_slowly(data, bytes_per_second)

    def poll_body(self, exchange: Exchange, fields: dict[str, Any]) -> Reply:
        """`frames`, and what overrules: `cursor`, `head`, `more`, `close`."""
        pairs = self.frames(fields.get("frames", []), exchange)
        cursors = [cursor for _, cursor in pairs if cursor]
        body = {
            "connection": exchange.connection,
            "frames": [frame for frame, _ in pairs],
            "cursor": cursors[-1] if cursors else exchange.request.query.get("since"),
            "head": self._server.head,
            "more": False,
            "close": None,
        }
        return json_reply(body | {name: value for name, value in fields.items() if name != "frames"})

    async def answer(self, exchange: Exchange, fields: dict[str, Any]) -> None:
        """By whichever of the answers `fields` names."""
        if "reply" in fields:
            exchange.reply(reply_of(fields["reply"]))
        elif "poll" in fields:
            exchange.reply(self.poll_body(exchange, fields["poll"]))
        elif fields.get("reset"):
            exchange.reset()
        elif fields.get("hang"):
            exchange.note("is never answered")
            exchange.mute()
        else:
            self._open(exchange)
            if "welcome" in fields and fields["welcome"] != "none":
                await self.send(exchange, [{"welcome": fields["welcome"] or {}}])
            await self.send(exchange, fields.get("frames", []))

    def _open(self, exchange: Exchange) -> None:
        match exchange.kind:
            case "websocket":
                exchange.open_websocket()
            case "sse":
                exchange.open_events()
            case _:
                raise BadScenario(f"a {exchange.kind} request cannot be opened; give it a reply")

    # ---- rules -------------------------------------------------------------------------------------------------

    def rule_of(self, value: Any) -> Rule | None:
        """`hold`; `play`: as a gateway would; `welcome_then_close` and so on as a mapping of an answer."""
        match value:
            case "hold":
                return None
            case "play":
                return self._play
            case {"welcome_then_close": code}:
                return self._welcome_then(code)
            case dict():
                return lambda exchange: self.answer(exchange, value)
            case _:
                raise BadScenario(f"no such rule: {value!r}")

    def _welcome_then(self, code: int) -> Rule:
        async def rule(exchange: Exchange) -> None:
            self._open(exchange)
            await self.send(exchange, [{"welcome": {}}])
            exchange.close(code, "scripted")

        return rule

    async def _play(self, exchange: Exchange) -> None:
        """Everything from its cursor, then what is published; polls answer as soon as there is something."""
        query = exchange.request.query
        begin = exchange.request.position
        position = int(begin.rpartition(".")[2]) if begin else 0 if query.get("from") == "start" else self._server.head
        if exchange.kind == "poll":
            self._players[exchange] = asyncio.create_task(self._play_poll(exchange, position))
            return
        self._open(exchange)
        await self.send(exchange, [{"welcome": {"cursor": self._server.cursor(position)}}])
        self._players[exchange] = asyncio.create_task(self._play_on(exchange, position))

    async def _play_on(self, exchange: Exchange, position: int) -> None:
        server = self._server
        while not exchange.is_over.is_set():
            async with server.changed:
                while server.head <= position:
                    await server.changed.wait()
            await self.send(exchange, [{"log": f"{position + 1}-{server.head}"}])
            position = server.head

    async def _play_poll(self, exchange: Exchange, position: int) -> None:
        server = self._server
        try:
            async with asyncio.timeout(float(exchange.request.query["wait"])), server.changed:
                while server.head <= position:
                    await server.changed.wait()
        except TimeoutError:
            pass
        frames: list[Any] = [{"welcome": {"cursor": server.cursor(position)}}]
        if server.head > position:
            frames.append({"log": f"{position + 1}-{server.head}"})
        exchange.reply(self.poll_body(exchange, {"frames": frames}))

    async def stop(self) -> None:
        for player in self._players.values():
            player.cancel()
        await asyncio.gather(*self._players.values(), return_exceptions=True)


def _json(frame: Frame) -> str:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


__all__ = ["Answers", "reply_of"]
