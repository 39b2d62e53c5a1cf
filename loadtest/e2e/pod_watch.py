"""`python -m loadtest.e2e.pod_watch --namespace N --release R`: looks at the gateways' pods twice a second.

Runs inside the cluster's network, where pods answer. Question: `looks`: those since it was asked before.
"""

import argparse
import asyncio
import re
import time
from collections import deque
from contextlib import suppress
from typing import Any, Final

import aiohttp
from kubernetes.aio import client, config

from loadtest.e2e.inside import serve

EVERY_SECONDS: Final = 0.5
ASK_SECONDS: Final = 3.0
MAX_LOOKS: Final = 7_200
"""An hour; then the oldest are forgotten."""
COST: Final = "controller.kubernetes.io/pod-deletion-cost"
ADMIN_PORT: Final = 9090
_FIGURES: Final = re.compile(r"^relayrouter_(open_ingests|connections)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


class PodWatch:
    def __init__(self, namespace: str, release: str) -> None:
        self._namespace = namespace
        self._selector = f"app.kubernetes.io/instance={release},app.kubernetes.io/component=gateway"
        self._looks: deque[dict[str, Any]] = deque(maxlen=MAX_LOOKS)
        self._figures: dict[str, tuple[int, int]] = {}
        """As each pod told last."""
        self._watching = asyncio.create_task(self._watch())

    async def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["do"] != "looks":
            raise ValueError(asked["do"])
        if self._watching.done():
            self._watching.result()
        looks = list(self._looks)
        self._looks.clear()
        return {"looks": looks}

    async def _watch(self) -> None:
        await config.load_kube_config()  # type: ignore[no-untyped-call]
        async with client.ApiClient() as api, aiohttp.ClientSession() as http:
            core = client.CoreV1Api(api)
            while True:
                with suppress(aiohttp.ClientError, TimeoutError, client.ApiException):  # then the next one tells
                    self._looks.append(await self._look(core, http))
                await asyncio.sleep(EVERY_SECONDS)

    async def _look(self, core: Any, http: aiohttp.ClientSession) -> dict[str, Any]:
        found = await core.list_namespaced_pod(
            self._namespace, label_selector=self._selector, _request_timeout=ASK_SECONDS
        )
        at = time.time()  # of the listing: what pods say of themselves is read a moment later
        running = [pod for pod in found.items if pod.status.phase == "Running" and pod.status.pod_ip]
        return {"at": at, "pods": await asyncio.gather(*(self._pod(http, pod) for pod in running))}

    async def _pod(self, http: aiohttp.ClientSession, pod: Any) -> dict[str, Any]:
        name = pod.metadata.name
        with suppress(aiohttp.ClientError, TimeoutError):
            self._figures[name] = await _figures(http, f"http://{pod.status.pod_ip}:{ADMIN_PORT}/metrics")
        runs, connections = self._figures.get(name, (0, 0))
        conditions = pod.status.conditions or ()
        cost = (pod.metadata.annotations or {}).get(COST)
        return {
            "name": name,
            "runs": runs,
            "connections": connections,
            "cost": None if cost is None else int(cost),
            "is_ready": any(one.type == "Ready" and one.status == "True" for one in conditions),
            "is_leaving": pod.metadata.deletion_timestamp is not None,
        }


async def _figures(http: aiohttp.ClientSession, url: str) -> tuple[int, int]:
    """Open streams of producers, and clients."""
    async with http.get(url, timeout=aiohttp.ClientTimeout(ASK_SECONDS)) as answer:
        sums = dict.fromkeys(("open_ingests", "connections"), 0)
        for name, value in _FIGURES.findall(await answer.text()):
            sums[name] += int(float(value))
    return sums["open_ingests"], sums["connections"]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--release", required=True)
    arguments = parser.parse_args()
    await serve(PodWatch(arguments.namespace, arguments.release).answer)


if __name__ == "__main__":
    asyncio.run(main())
