"""Real proxies in front of three gateways, with the configuration that we publish (A9)."""

from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

from loadtest.fronts import FILES, Front, program
from loadtest.processes import Gateway, Server
from loadtest.stage import Stage

GATEWAYS = 3


@dataclass(frozen=True, slots=True)
class House:
    front: Front
    gateways: list[Gateway]
    server: Server


Build = Callable[..., Coroutine[Any, Any, House]]


@pytest.fixture(params=FILES)
def kind(request: pytest.FixtureRequest) -> str:
    """Skipped, and counted, where the proxy is not installed."""
    if program(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


@pytest.fixture
async def build(stage: Stage, kind: str) -> AsyncIterator[Build]:
    """Call it with changes of the published file and the gateways' settings, and await it."""
    fronts: list[Front] = []

    async def build_one(changes: dict[str, str] | None = None, **settings: str) -> House:
        server = stage.server()
        gateways = await stage.start_gateways(GATEWAYS, server.url, **settings)
        front = Front(kind, gateways, stage.folder / kind, changes or {})
        fronts.append(front)
        return House(await front.start(), gateways, server)

    yield build_one
    for front in fronts:
        await front.end()
