"""`python -m loadtest.e2e.greetings --url U --sessions N`: which gateways welcome three connections of each session.

Prints one JSON object: session -> the gateways. Token: E2E_TOKEN.
"""

import argparse
import asyncio
import json
import os
from typing import Final

import aiohttp

EACH: Final = 3
SECONDS: Final = 15.0


async def greetings(url: str, token: str, sessions: int) -> dict[str, list[str]]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    met: dict[str, list[str]] = {}
    async with aiohttp.ClientSession(url, headers=headers) as client:
        for number in range(sessions):
            session = f"met-{number}"
            met[session] = [await _gateway(client, session, f"c{attempt}") for attempt in range(EACH)]
    return met


async def _gateway(client: aiohttp.ClientSession, session: str, name: str) -> str:
    async with asyncio.timeout(SECONDS), client.ws_connect(f"/v1/sessions/{session}/ws?client={name}") as socket:
        welcome = await socket.receive_json()
        gateway: str = welcome["payload"]["gateway"]
        return gateway


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--sessions", type=int, default=20)
    arguments = parser.parse_args()
    token = os.environ.get("E2E_TOKEN", "")
    print(json.dumps(asyncio.run(greetings(arguments.url, token, arguments.sessions))))


if __name__ == "__main__":
    main()
