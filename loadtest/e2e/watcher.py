"""`python -m loadtest.e2e.watcher --namespace N --selector S`: asks every pod's `/admin/admission` twice a second.

Pods are learned from a watch, so that new ones are asked from their first moment and ending ones until their last.
Token with scope admin: E2E_TOKEN. Question: `admissions`: gateway -> its answers' seconds, as `Admissions` takes them.
"""

import argparse
import asyncio
import os
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from typing import Any, Final

from loadtest.e2e.admissions import Admissions
from loadtest.e2e.inside import serve
from loadtest.plain_http import NoAnswer, ask_once

LOOK_SECONDS: Final = 0.5
ASK_SECONDS: Final = 2.0
ADMIN_PORT: Final = 9090
SILENT_LOOKS: Final = 40
"""So many without an answer: the pod is gone. A watch that tells it again starts anew."""
_ROW: Final = '{.metadata.name} {.status.podIP} {.status.containerStatuses[0].restartCount}{"\\n"}'


class Watcher:
    def __init__(self, namespace: str, selector: str, token: str) -> None:
        self.admissions = Admissions(since=time.time())
        self._words = ("get", "pods", "-n", namespace, "-l", selector, "--watch", "-o", f"jsonpath={_ROW}")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._watching = asyncio.create_task(self._watch())

    async def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["do"] != "admissions":
            raise ValueError(asked["do"])
        found = self.admissions
        return {
            "over_budget": found.over_budget(),
            "most": found.most,
            "by_second": dict(found.by_second()),
            "gateways": sorted(found.budgets),
            "is_watching": not self._watching.done(),
        }

    async def _watch(self) -> None:
        """Begins anew when the API server goes away."""
        while True:
            process = await asyncio.create_subprocess_exec("kubectl", *self._words, stdout=PIPE, stderr=DEVNULL)
            assert process.stdout is not None
            try:
                while line := await process.stdout.readline():
                    self._learn(line.decode().split())
            finally:
                with suppress(ProcessLookupError):  # Process.kill looks first, and takes its end from asyncio
                    os.kill(process.pid, signal.SIGKILL)
                await process.wait()
            await asyncio.sleep(LOOK_SECONDS)

    def _learn(self, words: list[str]) -> None:
        if len(words) != 3:
            return  # it has no address yet
        name, address, restarts = words
        key = f"{name}.{restarts}"
        asking = self._asking.get(key)
        if asking is None or asking.done():
            self._asking[key] = asyncio.create_task(self._ask(key, f"http://{address}:{ADMIN_PORT}"))

    async def _ask(self, gateway: str, url: str) -> None:
        silent = 0
        while silent < SILENT_LOOKS:
            try:
                answer = await ask_once(
                    url, "GET", "/admin/admission", headers=self._headers, timeout_seconds=ASK_SECONDS
                )
                if answer.status == 200:
                    self.admissions.note(gateway, answer.json())
                silent = 0
            except NoAnswer:
                silent += 1
            await asyncio.sleep(LOOK_SECONDS)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--selector", required=True)
    arguments = parser.parse_args()
    token = os.environ.get("E2E_TOKEN", "")
    await serve(Watcher(arguments.namespace, arguments.selector, token).answer)


if __name__ == "__main__":
    asyncio.run(main())
