"""What every step is given: the cluster, its images, and how much load there is to be."""

import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from loadtest.e2e.images import ENVOY, REDIS, Images
from loadtest.e2e.inside import ProcessEnded
from loadtest.e2e.report import Row
from loadtest.e2e.site import Site, Values, site
from loadtest.e2e.tool import CannotRun, CommandFailed, Tool

FORCED: Final[Values] = {
    # No registry: this machine's Redis, whose volume is a folder that belongs to root.
    "valkey": {
        "image": {"registry": "", "repository": REDIS.partition(":")[0], "tag": REDIS.partition(":")[2]},
        "command": ["redis-server"],
        "podSecurityContext": {"runAsNonRoot": False, "runAsUser": 0, "runAsGroup": 0, "fsGroup": 0},
        "securityContext": {"capabilities": {"drop": []}},
    },
    # Nodes have cgroup v1, and share the processors of one machine.
    "memoryWatermark": "limit",
    "resources": {"requests": {"cpu": "100m"}},
}


@dataclass(frozen=True, slots=True)
class Place:
    tool: Tool
    images: Images
    streams: int = 600
    is_small: bool = False
    """Shorter drains, as CI has minutes."""
    keep: bool = False
    """Leave namespaces behind, to look at."""
    versions: dict[str, str] = field(default_factory=dict)
    """Of all that took part, as steps learn them: what docs/evidence.md names."""

    @asynccontextmanager
    async def site(self, name: str, forced: dict[str, Any] | None = None) -> AsyncIterator[Site]:
        """The namespace `e2e-<name>`; `forced`: instead of FORCED."""
        async with site(self.tool, f"e2e-{name}", FORCED if forced is None else forced, keep=self.keep) as made:
            yield made


async def tried(step: str, doing: Awaitable[Row]) -> Row:
    """Its row; a failed one where it breaks off, so that what was found before is kept."""
    began = time.monotonic()
    try:
        return await doing
    except CannotRun as exc:
        return Row(step, seconds=time.monotonic() - began, note=str(exc), is_tried=False)
    except (CommandFailed, ProcessEnded, TimeoutError, OSError) as exc:
        return Row(step, seconds=time.monotonic() - began, note=f"{type(exc).__name__}: {exc}")


__all__ = ["ENVOY", "FORCED", "REDIS", "Place", "tried"]
