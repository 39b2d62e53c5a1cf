"""`python -m loadtest.e2e.pod_watch --namespace N --release R`: the gateways' pods, twice a second, as JSON lines.

Runs inside the cluster's network, where pods answer; ends with its standard input.
"""

import argparse
import asyncio
import json
import re
import sys
import time
from typing import Any, Final

import aiohttp
from kubernetes.aio import client, config

EVERY_SECONDS: Final = 0.5
ASK_SECONDS: Final = 3.0
COST: Final = "controller.kubernetes.io/pod-deletion-cost"
ADMIN_PORT: Final = 9090
_FIGURES: Final = re.compile(r"^relayrouter_(open_ingests|connections)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


async def watch(namespace: str, release: str) -> None:
    await config.load_kube_config()  # type: ignore[no-untyped-call]
    selector = f"app.kubernetes.io/instance={release},app.kubernetes.io/component=gateway"
    async with client.ApiClient() as api, aiohttp.ClientSession() as http:
        core = client.CoreV1Api(api)
        while True:
            began = time.monotonic()
            try:
                found = await core.list_namespaced_pod(namespace, label_selector=selector, _request_timeout=ASK_SECONDS)
            except (aiohttp.ClientError, TimeoutError, client.ApiException) as exc:
                print(f"{type(exc).__name__}: {exc}", file=sys.stderr, flush=True)
            else:
                at = time.time()  # of the listing: what pods say of themselves is read a moment later
                pods = await asyncio.gather(*(_pod(http, pod) for pod in found.items))
                print(json.dumps({"at": at, "pods": [pod for pod in pods if pod is not None]}), flush=True)
            await asyncio.sleep(max(0.0, EVERY_SECONDS - (time.monotonic() - began)))


async def _pod(http: aiohttp.ClientSession, pod: Any) -> dict[str, Any] | None:
    """None: it has not begun, or is over."""
    if pod.status.phase != "Running" or not pod.status.pod_ip:
        return None
    figures = {"open_ingests": 0, "connections": 0}
    try:
        url = f"http://{pod.status.pod_ip}:{ADMIN_PORT}/metrics"
        async with http.get(url, timeout=aiohttp.ClientTimeout(ASK_SECONDS)) as answer:
            text = await answer.text()
    except (aiohttp.ClientError, TimeoutError):
        text = ""
    for name, value in _FIGURES.findall(text):
        figures[name] += int(float(value))
    conditions = pod.status.conditions or ()
    cost = (pod.metadata.annotations or {}).get(COST)
    return {
        "name": pod.metadata.name,
        "runs": figures["open_ingests"],
        "connections": figures["connections"],
        "cost": None if cost is None else int(cost),
        "is_ready": bool(text) and any(one.type == "Ready" and one.status == "True" for one in conditions),
        "is_leaving": pod.metadata.deletion_timestamp is not None,
    }


async def until_input_ends() -> None:
    """Standard input must be a pipe."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--release", required=True)
    arguments = parser.parse_args()
    watching = asyncio.create_task(watch(arguments.namespace, arguments.release))
    ending = asyncio.create_task(until_input_ends())
    done, _ = await asyncio.wait({watching, ending}, return_when=asyncio.FIRST_COMPLETED)
    watching.cancel()
    if watching in done:
        watching.result()


__all__ = ["until_input_ends", "watch"]

if __name__ == "__main__":
    asyncio.run(main())
