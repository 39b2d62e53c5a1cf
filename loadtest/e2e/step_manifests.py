"""Step 5: plain manifests instead of the chart, rolled under live streams; upgrades that keep values and secrets."""

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from loadtest.e2e.images import FOLDER, PRESENT
from loadtest.e2e.place import FORCED, REDIS, Place, tried
from loadtest.e2e.report import Row
from loadtest.e2e.site import CHART, READY_SECONDS, Site, merged, site
from loadtest.e2e.tool import ROOT, CommandFailed
from loadtest.e2e.tool import run as run_program

MANIFESTS: Final = ROOT / "deploy" / "k8s"
PLAIN: Final = "plain manifests, rollout restart"
NAME: Final = "relayrouter"
"""Namespace and names in the manifests."""
KEPT: Final = {
    "replicas": 3,
    "config": {"retention": {"ttl_seconds": 900}, "liveness": {"heartbeat_seconds": 20}},
    "podLabels": {"team": "chat"},
}
"""What somebody had set before the upgrades."""
MEANT: Final = frozenset({"values.image.tag"})
"""What an upgrade to another release changes on purpose."""
ROLL_SECONDS: Final = 600.0
CALM_SECONDS: Final = 5.0
APPLY_SECONDS: Final = 60.0


async def run(place: Place) -> list[Row]:
    return [await tried(PLAIN, _manifests(place)), *await _kept_values(place)]


# ---- the manifests ---------------------------------------------------------------------------------------------


async def _manifests(place: Place) -> Row:
    """Passed: applied again they change nothing, and a restart of all pods is noticed by nobody."""
    async with site(place.tool, NAME, {}, keep=place.keep) as made:
        made.release = made.fullname = NAME
        began = time.monotonic()
        overlay = await _overlay(FOLDER / "manifests")
        await place.tool.kubectl("apply", "-k", str(overlay), seconds=APPLY_SECONDS)
        await _all_ready(made)
        ready_seconds = time.monotonic() - began
        # Made again, with the secrets made again: what is there is kept.
        changed = await _changed(place, await _overlay(FOLDER / "manifests"))
        before = {pod.name for pod in await made.pods()}
        async with made.load(place.streams) as load:
            await load.settled()
            await load.flow(CALM_SECONDS)
            began = time.monotonic()
            await place.tool.kubectl("rollout", "restart", f"deployment/{NAME}", "-n", NAME)
            await made.rolled(ROLL_SECONDS)
            seconds = time.monotonic() - began
            await load.settled()
            account = await load.end()
        is_rolled = not before & {pod.name for pod in await made.pods()}
    notes = [
        f"ready {ready_seconds:.0f} s after kubectl apply -k",
        f"applied again they would change {changed or 'nothing'}",
        f"rollout restart took {seconds:.0f} s" if is_rolled else "a pod was not replaced",
    ]
    return account.row(PLAIN, "; ".join(notes), is_passed=account.is_calm and is_rolled and not changed)


async def _changed(place: Place, overlay: Path) -> str:
    """What `kubectl diff` says; it masks secrets."""
    try:
        await place.tool.kubectl("diff", "-k", str(overlay), seconds=APPLY_SECONDS)
    except CommandFailed as exc:
        return str(exc)
    return ""


async def _overlay(folder: Path) -> Path:
    """A copy of the manifests with their secrets, made as the README says, and what this cluster needs on top."""
    base, overlay = folder / "k8s", folder / "overlay"
    shutil.copytree(MANIFESTS, base, dirs_exist_ok=True)
    await run_program([str(base / "make_secrets.sh")], seconds=APPLY_SECONDS)
    overlay.mkdir(exist_ok=True)
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(_kustomization()), encoding="utf-8")
    return overlay


def _kustomization() -> dict[str, Any]:
    """Another image for Valkey, as there is no registry, and the rights that its volume here needs. Nothing else."""
    name, _, tag = REDIS.partition(":")
    container = "/spec/template/spec/containers/0"
    forced = FORCED["valkey"]
    changes = {
        f"{container}/command": forced["command"],
        f"{container}/securityContext/capabilities": forced["securityContext"]["capabilities"],
        "/spec/template/spec/securityContext": forced["podSecurityContext"],
    }
    patch = [{"op": "replace", "path": path, "value": value} for path, value in changes.items()]
    return {
        "resources": ["../k8s"],
        "images": [{"name": "docker.io/valkey/valkey", "newName": name, "newTag": tag}],
        "patches": [{"target": {"kind": "StatefulSet"}, "patch": json.dumps(patch)}],
    }


async def _all_ready(made: Site) -> None:
    await made.tool.kubectl(
        "rollout", "status", f"statefulset/{NAME}-valkey", "-n", NAME, f"--timeout={READY_SECONDS:g}s",
        seconds=READY_SECONDS + 10,
    )  # fmt: skip
    await made.rolled()


# ---- upgrades --------------------------------------------------------------------------------------------------


async def _kept_values(place: Place) -> list[Row]:
    """From the previous release by each of Helm's ways to keep values."""
    previous = await place.images.previous()
    rows = []
    async with place.site("kept") as made:
        values = merged(KEPT, {"image": {"tag": previous.version}})
        await made.install(values, chart=previous.chart)
        before = await _state(made)
        to_this = ["--set", f"image.tag={PRESENT.rpartition(':')[2]}"]
        for flag, more in (
            ("--reuse-values", to_this),
            ("--reset-then-reuse-values", ["--set-string", "podLabels.round=2"]),
        ):
            step = f"helm upgrade {flag}"
            rows.append(await tried(step, _upgraded(place, made, step, [flag, *more], before)))
    return rows


async def _upgraded(place: Place, made: Site, step: str, options: list[str], before: Mapping[str, Any]) -> Row:
    """Passed: calm, all pods are new ones, and secrets and settings are those of the beginning."""
    pods = {pod.name for pod in await made.pods()}
    async with made.load(place.streams) as load:
        await load.settled()
        await load.flow(CALM_SECONDS)
        began = time.monotonic()
        words = ["upgrade", made.release, str(CHART), "-n", made.namespace, "--wait", "--timeout", f"{ROLL_SECONDS:g}s"]
        await made.tool.helm(*words, *options, seconds=ROLL_SECONDS + 30)
        await made.rolled(ROLL_SECONDS)
        seconds = time.monotonic() - began
        await load.settled()
        account = await load.end()
    differing = [path for path in differences(before, await _state(made)) if path not in MEANT]
    now = await made.pods()
    is_rolled = len(now) == KEPT["replicas"] and not pods & {pod.name for pod in now}
    notes = [
        f"{len(now)} pods replaced in {seconds:.0f} s" if is_rolled else "not all pods were replaced",
        f"changed: {', '.join(differing)}" if differing else "password, dev key and settings are the same",
    ]
    return account.row(step, "; ".join(notes), is_passed=account.is_calm and is_rolled and not differing)


async def _state(made: Site) -> dict[str, Any]:
    """What an upgrade must keep. Secrets are compared, never told."""
    where = ("-n", made.namespace)
    names = [f"{made.fullname}-{name}" for name in ("valkey", "dev-key")]
    secrets = await made.tool.kubectl_json("get", "secret", *names, *where)
    settings = await made.tool.kubectl_json("get", "configmap", f"{made.fullname}-config", *where)
    return {
        "secrets": {one["metadata"]["name"]: one["data"] for one in secrets["items"]},
        "settings": yaml.safe_load(settings["data"]["config.yaml"]),
        "values": json.loads(await made.tool.helm("get", "values", made.release, *where, "-o", "json")),
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any], at: str = "") -> list[str]:
    """Paths of what is no more as it was; what came is none. No values are told."""
    found = []
    for key, value in before.items():
        path = f"{at}.{key}" if at else key
        now = after.get(key)
        if isinstance(value, Mapping) and isinstance(now, Mapping):
            found += differences(value, now, path)
        elif key not in after or now != value:
            found.append(path)
    return found


__all__ = ["differences", "run"]
