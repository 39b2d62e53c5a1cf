"""Waits for what no event tells: readers and processes of the demo go on by themselves."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

_LOOK_SECONDS: Final = 0.05


async def until(is_true: Callable[[], bool], seconds: float | None = None) -> bool:
    """False when it did not become true in time."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while not is_true():
        if deadline is not None and time.monotonic() > deadline:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
    return True


__all__ = ["until"]
