"""Step 1: from nothing to ready with the chart's defaults; a text in and out through the Service, and through Envoy."""

import json
import secrets
import sys
from dataclasses import replace
from typing import Final

from loadtest.e2e.edge import edge
from loadtest.e2e.place import Place, tried
from loadtest.e2e.report import Row
from loadtest.e2e.site import Site
from loadtest.e2e.tool import CommandFailed

TEXT: Final = "".join(f"{number}. Ein Satz, 一个句子, one sentence 🕰️ of a text.\n" for number in range(400))
STREAMS: Final = 60
"""Steps with faults have more; here it is that everything fits together."""
FLOW_SECONDS: Final = 10.0
HASHED_SESSIONS: Final = 40
SERVICE: Final = "publish and tail through the Service"
EDGE: Final = "publish and tail through Envoy, hashing on the session"
UNCHANGED: Final = "unchanged"


async def run(place: Place) -> list[Row]:
    async with place.site("install") as site:
        return [
            await _install(place, site),
            await tried(SERVICE, _service(place, site)),
            await tried(EDGE, _edge(place, site)),
        ]


async def _install(place: Place, site: Site) -> Row:
    """Passed: all pods are ready, and `helm test` has sent its stream through the Service."""
    seconds = await site.install()
    place.versions.update(await _versions(site))
    told = await site.test()
    pods = await site.pods()
    nodes = len({pod.node for pod in pods})
    note = f"{len(pods)} pods on {nodes} nodes ready after {seconds:.1f} s; helm test: {_last_line(told, UNCHANGED)}"
    return Row("install with defaults, helm test", seconds=seconds, note=note, is_passed=UNCHANGED in told)


async def _service(place: Place, site: Site) -> Row:
    return await _through(place, site, await site.service_url(), SERVICE)


async def _edge(place: Place, site: Site) -> Row:
    """Passed: and every session's connections met on one gateway, while the sessions are on all of them."""
    url = await edge(place, site)
    row = await _through(place, site, url, EDGE)
    words = ("--url", url, "--sessions", str(HASHED_SESSIONS))
    environ = {"E2E_TOKEN": await site.token()}
    told = await place.tool.exec(sys.executable, "-m", "loadtest.e2e.greetings", *words, environ=environ)
    gateways: dict[str, list[str]] = json.loads(told)
    together = sum(len(set(met)) == 1 for met in gateways.values())
    used = {gateway for met in gateways.values() for gateway in met}
    is_hashed = together == HASHED_SESSIONS and len(used) == len(await site.pods())
    note = f"{together} of {HASHED_SESSIONS} sessions met on one gateway, on {len(used)} gateways in all"
    return replace(row, note=f"{row.note}; {note}", is_passed=row.is_passed and is_hashed)


async def _through(place: Place, site: Site, url: str, step: str) -> Row:
    """The command line first, then streams of the SDK."""
    session = f"cli-{secrets.token_hex(3)}"
    environ = {"RR_URL": url, "RR_TOKEN": await site.token()}
    command = (sys.executable, "-m", "gateway")
    await place.tool.exec(*command, "publish", session, "-", input=TEXT, environ=environ)
    tail = ("tail", session, "--from-start", "--until-run-end", "--text", "--quiet")
    came_out = await place.tool.exec(*command, *tail, environ=environ)
    is_same = came_out.rstrip("\n") == TEXT.rstrip("\n")
    async with site.load(min(STREAMS, place.streams), url=url, seconds_between=1.0) as load:
        await load.settled()
        await load.flow(FLOW_SECONDS)
        account = await load.end()
    word = "as it went in" if is_same else f"not as it went in ({len(came_out)} of {len(TEXT)} characters)"
    note = f"a text of {len(TEXT.encode()):,} bytes by the command line came out {word}"
    return account.row(step, note, is_passed=is_same and account.is_calm)


async def _versions(site: Site) -> dict[str, str]:
    """Of the programs in the pods."""
    asked = {
        "Python": ("deployment/" + site.fullname, ("python3", "--version")),
        "Redis": (f"statefulset/{site.fullname}-valkey", ("redis-server", "--version")),
    }
    told = {}
    for name, (where, command) in asked.items():
        try:
            words = (await site.tool.kubectl("exec", where, "-n", site.namespace, "--", *command)).split()
        except CommandFailed:
            continue  # an evidence without a version is better than none
        told[name] = next((word.removeprefix("v=") for word in words if word[-1:].isdigit() or "v=" in word), "")
    return told


def _last_line(text: str, word: str) -> str:
    return next((line for line in reversed(text.splitlines()) if word in line), "no word of success")


__all__ = ["run"]
