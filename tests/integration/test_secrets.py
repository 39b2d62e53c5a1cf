"""Tokens stay secret (U02): whatever way they are brought, they are in no log line, no metric and no answer."""

import json
import time
from typing import Any

import aiohttp
import jwt
import pytest

from loadtest.stage import Stage

pytestmark = pytest.mark.fault

SECRET = "s" * 40
KEYS = json.dumps([{"kid": "k", "algorithm": "HS256", "secret": SECRET}])


def token(marker: str, **claims: Any) -> str:
    now = int(time.time())
    fields = {"sub": "ann", "sessions": ["*"], "scope": "subscribe publish", "iat": now, "exp": now + 60}
    return jwt.encode(fields | {"marker": marker} | claims, SECRET, algorithm="HS256", headers={"kid": "k"})


async def test_a_token_is_in_no_log_no_metric_and_no_answer(stage: Stage) -> None:
    server = stage.server()
    gateway = await stage.gateway(
        server.url, auth__mode="jwt", auth__keys=KEYS, log__level="debug", server__query_token="true"
    )
    good, bad = token("good"), token("expired", exp=1)
    answers: list[str] = []
    kinds: list[str] = []

    async with aiohttp.ClientSession() as http:

        async def ask(method: str, path: str, **options: Any) -> None:
            async with http.request(method, gateway.url + path, **options) as response:
                answers.append(f"{response.status} {dict(response.headers)} {await response.text()}")

        async def connect(path: str, first: str | None = None, **options: Any) -> None:
            try:
                async with http.ws_connect(gateway.url + path, **options) as ws:
                    if first is not None:
                        await ws.send_str(json.dumps({"type": "control", "payload": {"kind": "auth", "token": first}}))
                    message = await ws.receive()
                    answers.append(str(message.data))
                    kinds.append(json.loads(message.data)["payload"]["kind"])
            except aiohttp.WSServerHandshakeError as exc:
                answers.append(f"{exc.status} {exc.headers}")
                kinds.append(str(exc.status))

        for used in (good, bad):
            header = {"Authorization": f"Bearer {used}"}
            await connect("/relay?sid=s1", headers=header)
            await connect("/relay?sid=s1", protocols=("relayrouter.v1", f"bearer.{used}"))
            await connect("/relay?sid=s1", first=used)
            await connect(f"/relay?sid=s1&token={used}")
            await connect(f"/relay?sid=&token={used}", headers=header)
            await ask("GET", f"/relay?sid=s1&token={used}", headers=header)
            await ask("GET", f"/nowhere?token={used}", headers=header)
            await ask("POST", "/v1/sessions/s1/push", headers=header, data=f"no json {used}")
            await ask("POST", "/v1/tickets", headers=header, json={})
            await ask("POST", "/v1/tickets", headers={"Authorization": used})
        ticket = await _ticket(http, gateway.url, good)
        await connect(f"/relay?sid=s1&ticket={ticket}")
        await connect(f"/relay?sid=s1&ticket={ticket}")
        metrics = (await gateway.admin("/metrics")).body.decode()

    everywhere = gateway.log() + metrics + "".join(answers)
    signatures = [part for used in (good, bad) for part in used.split(".")[1:]]
    assert kinds == [*["welcome"] * 4, "400", "401", "401", "error", "401", "400", "welcome", "401"]
    assert [part for part in signatures if part in everywhere] == []
    assert ticket not in everywhere
    assert SECRET not in everywhere


async def _ticket(http: aiohttp.ClientSession, url: str, used: str) -> str:
    async with http.post(url + "/v1/tickets", headers={"Authorization": f"Bearer {used}"}) as response:
        ticket: str = (await response.json())["ticket"]
        return ticket
