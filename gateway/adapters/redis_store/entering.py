"""Scripts that write to a session whose meta may be missing or of another server: `enter`, then again.

One call of such a script is one attempt of its port: the loop here ends as soon as a script has done something.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.adapters.redis_store import answers
from gateway.adapters.redis_store.keys import SessionKeys
from gateway.adapters.resp import Endpoint, Reply, Router, Script
from gateway.domain.wire.ids import UserId
from gateway.ports import StoreUnavailable

ATTEMPTS: Final = 3


def nonces() -> str:
    """Ten characters for an epoch and eight for a fork, in case one begins."""
    return secrets.token_hex(9)


async def enter(
    endpoint: Endpoint, script: Script, keys: SessionKeys, owner: UserId | None, *, may_make: bool
) -> answers.Entered:
    """Makes the session when it is missing and may be made; opens a fork when another server goes on."""
    arguments = [endpoint.incarnation, nonces(), owner or "", "1" if may_make else "", ""]
    entered = answers.read_entered(await endpoint.evaluate(script, keys.of_log, arguments, repeats=True))
    if entered.server:
        endpoint.incarnation = entered.server.decode()
    return entered


async def entering(
    call: Callable[[Endpoint], Awaitable[Reply]],
    router: Router,
    script: Script,
    keys: SessionKeys,
    owner: UserId | None,
    *,
    may_make: bool,
) -> tuple[Reply, bytes]:
    """What `call(endpoint)` answers, and `live`; or None and why it cannot be called: `missing`, `deleted`."""
    for _ in range(ATTEMPTS):
        answer = await call(router.of(keys.meta))
        if answer not in (b"m", [b"m"]):
            return answer, b"live"
        entered = await enter(router.of(keys.meta), script, keys, owner, may_make=may_make)
        if entered.state != b"live":
            return None, entered.state
    raise StoreUnavailable("the session comes and goes", outcome_unknown=False)


__all__ = ["ATTEMPTS", "enter", "entering"]
