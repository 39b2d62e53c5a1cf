"""`python -m loadtest.e2e.ask URL PATH`: the body of one answer, or an error and exit status 1. Token: E2E_TOKEN."""

import asyncio
import os
import sys

from loadtest.plain_http import ask_once


async def main(url: str, path: str) -> int:
    answer = await ask_once(url, "GET", path, headers={"Authorization": f"Bearer {os.environ.get('E2E_TOKEN', '')}"})
    body = answer.body.decode()
    if answer.status != 200:
        print(f"{answer.status}: {body[:500]}", file=sys.stderr)
        return 1
    print(body)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
