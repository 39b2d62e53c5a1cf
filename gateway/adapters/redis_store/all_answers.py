"""Calls of one piece of work that are under way together, waited for as one."""

import asyncio
from collections.abc import Sequence

from gateway.adapters.resp import Reply
from gateway.ports import StoreUnavailable


async def all_answers(calls: "Sequence[asyncio.Future[Reply]]") -> list[Reply]:
    """Every answer, or the first failure once all have ended: no failure is left without somebody who reads it."""
    given = await asyncio.gather(*calls, return_exceptions=True)
    for answer in given:
        if isinstance(answer, BaseException):
            raise answer
    return list(given)


async def each_answer(calls: "Sequence[asyncio.Future[Reply]]") -> "list[Reply | StoreUnavailable]":
    """Every answer, or why there is none: in a cluster one server may be away and the others not."""
    given: list[Reply | StoreUnavailable] = []
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(answer, BaseException) and not isinstance(answer, StoreUnavailable):
            raise answer
        given.append(answer)
    return given
