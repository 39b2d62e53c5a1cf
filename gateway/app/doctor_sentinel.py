"""Doctor's questions to the sentinels: do they answer, agree, and could they promote somebody? Changes nothing."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from redis.exceptions import RedisError, ResponseError

from gateway.adapters.resp import Address
from gateway.adapters.resp.address import Sentinels
from gateway.app.doctor_client import open_client
from gateway.app.findings import Finding, fail, ok, warn
from gateway.settings import RedisSettings
from gateway.settings.redis_url import shown_place

_SWITCH_SECONDS = 2.0
"""What votes, promotion and reconnects take after a primary is taken for dead."""


_MAX_DEADLINE_SECONDS = 60.0
"""That the setting allows."""


@dataclass(frozen=True, slots=True)
class _View:
    """What one sentinel said."""

    place: tuple[str, int]
    error: str = ""
    primary: tuple[str, int] | None = None
    quorum_error: str = ""
    down_after_seconds: float = 0.0


class SentinelRound:
    """Asks all of them, each within `redis.sentinel_timeout_seconds`."""

    def __init__(self, address: Address, who: Sentinels, tls: ssl.SSLContext | None, settings: RedisSettings) -> None:
        self._settings = settings
        self._who = who
        self._views = [_ask(address, who, place, tls, settings) for place in who.places]

    @property
    def primary(self) -> tuple[str, int] | None:
        """As the first one that answers knows it, which is what a gateway does."""
        return next((view.primary for view in self._views if view.primary is not None), None)

    def findings(self) -> Iterator[Finding]:
        good = [view for view in self._views if view.primary is not None]
        bad = [f"{shown_place(*view.place)}: {view.error}" for view in self._views if view.primary is None]
        shown = f"{len(good)} of {len(self._views)} name the primary {self._who.service}"
        advice = "start them, or correct redis.url and redis.sentinel_* (user, password)"
        if not good:
            yield fail("sentinels", f"{shown} ({'; '.join(bad)})", advice)
            return
        named = sorted({shown_place(*view.primary) for view in good if view.primary is not None})
        if len(named) > 1:
            yield fail(
                "sentinels", f"they disagree: {', '.join(named)}", "wait until a fail-over has ended, then look again"
            )
        elif bad:
            yield warn("sentinels", f"{shown} ({'; '.join(bad)})", advice)
        elif len(good) < 3:
            yield warn("sentinels", shown, "run three on three machines, and name all of them in redis.url")
        else:
            yield ok("sentinels", f"{shown}: {named[0]}")
        yield self._quorum(good)
        yield self._patience(good)

    def _quorum(self, good: list[_View]) -> Finding:
        errors = sorted({view.quorum_error for view in good if view.quorum_error})
        if errors:
            return fail(
                "sentinel quorum", "; ".join(errors), "without it nobody is promoted: start the missing sentinels"
            )
        return ok("sentinel quorum", "reached")

    def _patience(self, good: list[_View]) -> Finding:
        longest = max(view.down_after_seconds for view in good)
        deadline = self._settings.deadline_seconds
        shown = f"down-after {longest:g} s, redis.deadline_seconds {deadline:g}"
        if longest + _SWITCH_SECONDS > deadline:
            shorter = f"`SENTINEL SET {self._who.service} down-after-milliseconds 2000` on each sentinel"
            needed = longest + _SWITCH_SECONDS
            is_possible = needed < _MAX_DEADLINE_SECONDS
            return warn(
                "sentinel patience",
                f"{shown}: producers get 503 in every fail-over and must repeat",
                f"raise redis.deadline_seconds above {needed:g}, or {shorter}" if is_possible else shorter,
            )
        return ok("sentinel patience", shown)


def _ask(
    address: Address, who: Sentinels, place: tuple[str, int], tls: ssl.SSLContext | None, settings: RedisSettings
) -> _View:
    there = replace(address.at(*place), database=0, username=who.username, password=who.password)
    client: Any = open_client(there, tls, settings, timeout_seconds=settings.sentinel_timeout_seconds)
    try:
        found = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", who.service)
        if found is None:
            return _View(place, error="it does not watch a primary of this name")
        fields = client.execute_command("SENTINEL", "MASTER", who.service)
        # A map in RESP3, names and values in turn in RESP2.
        told = fields if isinstance(fields, dict) else dict(zip(fields[::2], fields[1::2], strict=False))
        return _View(
            place,
            primary=(found[0].decode(), int(found[1])),
            quorum_error=_quorum_error(client, who.service),
            down_after_seconds=int(told[b"down-after-milliseconds"]) / 1000,
        )
    except (RedisError, OSError, KeyError, ValueError) as exc:
        return _View(place, error=" ".join(str(exc).split()) or type(exc).__name__)
    finally:
        client.close()


def _quorum_error(client: Any, service: str) -> str:
    try:
        client.execute_command("SENTINEL", "CKQUORUM", service)
    except ResponseError as exc:
        return str(exc)
    return ""


__all__ = ["SentinelRound"]
