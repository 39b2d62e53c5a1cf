"""The yardstick: the gateway that most teams write first. aiohttp + uvloop + redis-py pub/sub + json + send_str.

It keeps no log, no cursor, no lease, and loses whatever pub/sub loses. Kept below 80 lines on purpose.
"""

import argparse
import json
from contextlib import suppress

import redis.asyncio as redis
import uvloop
from aiohttp import WSMsgType, web


class OrdinaryGateway:
    def __init__(self, redis_url: str) -> None:
        self.redis = redis.from_url(redis_url)
        self.pubsub = self.redis.pubsub()
        self.sockets: dict[str, set[web.WebSocketResponse]] = {}

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        session = request.match_info["session"]
        socket = web.WebSocketResponse(heartbeat=20)
        await socket.prepare(request)
        first = session not in self.sockets
        self.sockets.setdefault(session, set()).add(socket)
        if first:
            await self.pubsub.subscribe(f"session:{session}")
        await socket.send_str(json.dumps({"type": "control", "payload": {"kind": "welcome"}}))
        try:
            async for message in socket:
                if message.type == WSMsgType.ERROR:
                    break
        finally:
            self.sockets[session].discard(socket)
        return socket

    async def relay(self) -> None:
        await self.pubsub.subscribe("session:")
        async for message in self.pubsub.listen():
            if message["type"] != "message":
                continue
            session = message["channel"].decode().removeprefix("session:")
            frame = json.loads(message["data"])
            frame["session_id"] = session
            for socket in list(self.sockets.get(session, ())):
                with suppress(ConnectionError):
                    await socket.send_str(json.dumps(frame))


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--redis-url", required=True)
    arguments = parser.parse_args()
    gateway = OrdinaryGateway(arguments.redis_url)
    app = web.Application()
    app.router.add_get("/v1/sessions/{session}/ws", gateway.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
    await site.start()
    print(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}), flush=True)
    await gateway.relay()


if __name__ == "__main__":
    uvloop.run(main())
