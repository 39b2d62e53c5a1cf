"""A client of 150 lines, to try the runner on: one WebSocket, cursors, overlaps, plain backoff. No ladder, no queue.

`--broken` makes it one that forgets: it applies what it has already, and comes back without its cursor.
"""

import asyncio
import contextlib
import hashlib
import json
import sys
import time
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp

BEGAN = time.monotonic()
IS_BROKEN = "--broken" in sys.argv
FINAL = {4401: "AuthError", 4403: "ForbiddenError", 4404: "NotFoundError", 4409: "SupersededError"}


def say(event: str, **fields: Any) -> None:
    line = {"event": event, "t": int((time.monotonic() - BEGAN) * 1000), **fields}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Session:
    def __init__(self, name: str, options: dict[str, Any], http: aiohttp.ClientSession) -> None:
        self.name = name
        self.options = options
        self.http = http
        self.line = ""
        self.position = -1
        self.texts: dict[str, str] = {}
        self.state = "connecting"
        self.client = options.get("client") or "reference"

    def set_state(self, state: str, cause: str = "") -> None:
        self.state = state
        channel = "websocket" if state == "live" else None
        say("state", s=self.name, state=state, channel=channel, cause=cause)

    async def run(self) -> None:
        retry = 0
        while True:
            self.set_state("connecting")
            code = None
            with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
                code = await self.read_once(retry)
            if code in FINAL:
                self.set_state("closed", str(code))
                say("ended", s=self.name, error=FINAL[code], code=str(code))
                return
            self.set_state("waiting", str(code))
            await asyncio.sleep(self.options["timing"]["backoff_base_ms"] / 1000)
            retry += 1

    async def read_once(self, retry: int) -> int | None:
        query = {"client": self.client, "retry": retry}
        if self.line and not IS_BROKEN:
            query["cursor"] = f"{self.line}.{self.position}"
        elif self.options.get("from"):
            query["from"] = self.options["from"]
        path = f"/v1/sessions/{quote(self.options['session'], safe='')}/ws?{urlencode(query)}"
        headers = {"Authorization": f"Bearer {self.options['token']}"} if self.options.get("token") else {}
        url = self.options["url"][0] + path
        async with self.http.ws_connect(url, protocols=("relayrouter.v1",), headers=headers) as socket:
            async for message in socket:
                self.take(json.loads(message.data))
            return socket.close_code

    def take(self, frame: dict[str, Any]) -> None:
        payload = frame["payload"]
        if frame["type"] == "control":
            if payload["kind"] == "welcome":
                self.set_state("live")
            if payload["kind"] == "gap":
                self.say_message(payload, None, None, "")
            if "cursor" in payload:
                line, _, position = payload["cursor"].rpartition(".")
                self.line, self.position = line, int(position)
            return
        if frame["seq"] <= self.position and not IS_BROKEN:
            return
        self.position = frame["seq"]
        run, added = payload.get("run"), ""
        if payload["kind"] in ("delta", "code_block"):
            so_far = self.texts.get(run, "")
            skipped = max(len(so_far.encode()) - payload["at"], 0)
            added = payload["text"].encode()[skipped:].decode()
            self.texts[run] = so_far + added
        if payload["kind"] == "run_end":
            is_right = hashlib.sha256(self.texts.get(run, "").encode()).hexdigest() == payload["sha256"]
            say("digest", s=self.name, run=run, ok=is_right, healed=False)
        self.say_message(payload, frame["seq"], frame.get("first_seq"), added)

    def say_message(self, payload: dict[str, Any], seq: int | None, first: int | None, text: str) -> None:
        fields = {"kind": payload["kind"], "seq": seq, "first_seq": first, "run": payload.get("run"), "text": text}
        say("message", s=self.name, **fields, payload=payload)

    def status(self) -> dict[str, Any]:
        is_live = self.state == "live"
        cursor = f"{self.line}.{self.position}" if self.line else None
        channel = "websocket" if is_live else None
        return {"state": self.state, "channel": channel, "cursor": cursor, "client": self.client, "queued": 0}


async def main() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    sessions: dict[str, Session] = {}
    tasks: dict[str, asyncio.Task[None]] = {}
    async with aiohttp.ClientSession() as http:
        say("ready")
        while line := await reader.readline():
            asked = json.loads(line)
            name = asked.get("s")
            match asked["do"]:
                case "connect":
                    sessions[name] = Session(name, asked["options"], http)
                    tasks[name] = asyncio.create_task(sessions[name].run())
                case "text":
                    value = sessions[name].texts.get(asked["run"], "")
                    say("reply", s=name, id=asked["id"], value=value)
                case "status":
                    say("reply", s=name, id=asked["id"], value=sessions[name].status())
                case "close" if not tasks[name].done():
                    tasks[name].cancel()
                    await asyncio.gather(tasks[name], return_exceptions=True)
                    say("ended", s=name, error=None, code=None)
                case "close":
                    pass
                case "exit":
                    break
                case other:
                    say("driver_error", s=name, message=f"cannot {other}")
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
