"""One release in a namespace of its own on the cluster: made, changed, asked, and gone at the end."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loadtest.e2e.load import Load
from loadtest.e2e.tool import ROOT, CommandFailed, Tool

CHART: Final = ROOT / "deploy" / "helm" / "relayrouter"
READY_SECONDS: Final = 240.0
GONE_SECONDS: Final = 120.0
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pod:
    name: str
    address: str
    node: str
    is_ready: bool
    is_terminating: bool
    restarts: int
    image: str

    @property
    def url(self) -> str:
        return f"http://{self.address}:8080"

    @property
    def admin_url(self) -> str:
        return f"http://{self.address}:9090"

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> "Pod":
        """One of `kubectl get pods -o json`."""
        status = item["status"]
        conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
        return cls(
            name=item["metadata"]["name"],
            address=status.get("podIP", ""),
            node=item["spec"].get("nodeName", ""),
            is_ready=conditions.get("Ready") == "True",
            is_terminating="deletionTimestamp" in item["metadata"],
            restarts=sum(one["restartCount"] for one in status.get("containerStatuses", ())),
            image=item["spec"]["containers"][0]["image"],
        )


@dataclass(slots=True)
class Site:
    tool: Tool
    namespace: str
    forced: Values
    """What this cluster needs to be other than the chart's defaults."""
    release: str = "relay"
    fullname: str = "relay-relayrouter"
    _tokens: dict[tuple[str, ...], str] = field(default_factory=dict, repr=False)

    @property
    def selector(self) -> str:
        """Of the gateways' pods."""
        return f"app.kubernetes.io/instance={self.release},app.kubernetes.io/component=gateway"

    # ---- the release -------------------------------------------------------------------------------------------

    async def install(
        self, values: Values | None = None, *, chart: Path = CHART, seconds: float = READY_SECONDS
    ) -> float:
        """Returns when all pods are ready: the seconds that it took. Deep-merged over what the cluster needs."""
        return await self._helm("install", values or {}, chart, seconds)

    async def upgrade(
        self, values: Values | None = None, *, chart: Path = CHART, seconds: float = READY_SECONDS, keep: bool = False
    ) -> float:
        """Returns when only pods of the new version are there and ready. `keep`: only `values` are given to Helm, with
        `--reset-then-reuse-values`."""
        return await self._helm("upgrade", values or {}, chart, seconds, keep=keep)

    async def rollback(self, revision: int, seconds: float = READY_SECONDS) -> float:
        began = time.monotonic()
        words = ["rollback", self.release, str(revision), "-n", self.namespace, "--wait", "--timeout", f"{seconds:g}s"]
        await self.tool.helm(*words, seconds=seconds + 30)
        await self.rolled(seconds)
        return time.monotonic() - began

    async def test(self) -> str:
        """`helm test`: what its pod printed."""
        return await self.tool.helm("test", self.release, "-n", self.namespace, "--logs", "--timeout", "180s")

    async def uninstall(self) -> None:
        await self.tool.helm("uninstall", self.release, "-n", self.namespace, "--wait", "--timeout", "120s")

    async def _helm(self, verb: str, values: Values, chart: Path, seconds: float, *, keep: bool = False) -> float:
        began = time.monotonic()
        words = [verb, self.release, str(chart), "-n", self.namespace, "--wait", "--timeout", f"{seconds:g}s"]
        words += ["--reset-then-reuse-values"] if keep else []
        given = values if keep else merged(self.forced, values)
        await self.tool.helm(*words, "-f", "-", input=json.dumps(given), seconds=seconds + 30)
        await self.rolled(seconds)
        return time.monotonic() - began

    async def rolled(self, seconds: float = READY_SECONDS) -> None:
        """Until the rollout is done and no pod is ending any more. Raises CommandFailed."""
        await self.tool.kubectl(
            "rollout", "status", f"deployment/{self.fullname}", "-n", self.namespace, f"--timeout={seconds:g}s",
            seconds=seconds + 10,
        )  # fmt: skip
        await self.until(lambda pods: all(pod.is_ready and not pod.is_terminating for pod in pods), seconds)

    # ---- what is there -----------------------------------------------------------------------------------------

    async def pods(self, selector: str = "") -> list[Pod]:
        """Those of the gateways, ending ones included, by name."""
        told = await self.tool.kubectl_json("get", "pods", "-n", self.namespace, "-l", selector or self.selector)
        return sorted((Pod.read(item) for item in told["items"]), key=lambda pod: pod.name)

    async def until(self, holds: Callable[[list[Pod]], bool], seconds: float = READY_SECONDS) -> list[Pod]:
        """Asks for the gateways' pods until it holds. Raises CommandFailed."""
        give_up = time.monotonic() + seconds
        pods: list[Pod] = []
        while time.monotonic() < give_up:
            with suppress(CommandFailed):  # the API server may be away
                pods = await self.pods()
                if pods and holds(pods):
                    return pods
            await asyncio.sleep(1.0)
        raise CommandFailed(f"pods of {self.namespace} are not as they should be after {seconds:g} s: {pods}")

    async def service_url(self) -> str:
        """By its cluster address: one Service, any number of pods behind it."""
        told = await self.tool.kubectl_json("get", "service", self.fullname, "-n", self.namespace)
        port = next(one["port"] for one in told["spec"]["ports"] if one["name"] == "http")
        return f"http://{told['spec']['clusterIP']}:{port}"

    def dns_url(self) -> str:
        return f"http://{self.fullname}.{self.namespace}.svc.cluster.local"

    async def token(self, *scopes: str) -> str:
        """For every session, for a day; signed in a pod with the chart's key, once for each set of scopes."""
        if (known := self._tokens.get(scopes)) is not None:
            return known
        words = ["relayrouter", "token", "--sub", "e2e", "--session", "*", "--ttl", "24h"]
        words += [word for scope in scopes for word in ("--scope", scope)]
        told = await self.tool.kubectl(
            "exec", f"deployment/{self.fullname}", "-n", self.namespace, "-c", "gateway", "--", *words
        )
        self._tokens[scopes] = told.strip()
        return told.strip()

    async def admin(self, pod: Pod, path: str) -> Any:
        """JSON of a pod's admin port."""
        environ = {"E2E_TOKEN": await self.token("admin")}
        words = (sys.executable, "-m", "loadtest.e2e.ask", pod.admin_url, path)
        return json.loads(await self.tool.exec(*words, seconds=20, environ=environ))

    def load(self, streams: int, **how: Any) -> Load:
        """Producers and readers on this site, see Load."""
        return Load(self, streams, **how)


@asynccontextmanager
async def site(tool: Tool, namespace: str, forced: Values, *, keep: bool = False) -> AsyncIterator[Site]:
    """An empty namespace, one of that name before is removed; gone at the end, with volumes and all."""
    await _remove(tool, namespace)
    await tool.kubectl("create", "namespace", namespace)
    try:
        yield Site(tool, namespace, forced)
    except asyncio.CancelledError:
        raise  # in a hurry: the cluster goes, or the next run removes it
    except BaseException:
        await _leave(tool, namespace, keep=keep)
        raise
    await _leave(tool, namespace, keep=keep)


async def _leave(tool: Tool, namespace: str, *, keep: bool) -> None:
    """Not waited for: what comes next has a namespace of its own."""
    if not keep:
        with suppress(CommandFailed):
            await tool.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--wait=false")


async def _remove(tool: Tool, namespace: str) -> None:
    await tool.kubectl(
        "delete",
        "namespace",
        namespace,
        "--ignore-not-found",
        f"--timeout={GONE_SECONDS:g}s",
        seconds=GONE_SECONDS + 10,
    )


def merged(under: Values, over: Values) -> dict[str, Any]:
    """As Helm merges values: mappings by key, all else replaced."""
    result = dict(under)
    for key, value in over.items():
        mine = result.get(key)
        both = isinstance(mine, Mapping) and isinstance(value, Mapping)
        result[key] = merged(mine, value) if both and mine is not None else value
    return result


__all__ = ["CHART", "Pod", "Site", "merged", "site"]
