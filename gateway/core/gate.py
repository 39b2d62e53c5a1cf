"""The gate: whether one more client may connect now, by kind, address and user, before anything is spent on it.

Owns places, buckets and limits of one gateway. Must never take from one of them what another refuses, nor harm an
open connection. Called by the endpoints through adapters.http.admission; judged by domain/admission.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.domain.access.principal import Principal
from gateway.domain.admission.addresses import AddressKey
from gateway.domain.admission.bucket import Bucket, Turn
from gateway.domain.admission.by_second import BySecond
from gateway.domain.admission.keyed import K, KeyedRates, KeyLimits
from gateway.domain.admission.kinds import Kind
from gateway.domain.admission.pressure import Marks, Pressure
from gateway.domain.admission.rate import Rate, ns
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.ports import Clock
from gateway.settings import AdmissionSettings

PLACES_AFTER_MS: Final = 2_000
LAG_AFTER_MS: Final = 2_000
MEMORY_AFTER_MS: Final = 10_000
"""Before the border's jitter. Memory comes back slowly, and other gateways have some."""

UserKey = tuple[str, str]
"""Tenant and user."""
Refusal = Callable[[], RelayError | None]
"""Why nobody is let in at the moment: draining, or the subscription was never confirmed (R17)."""


@dataclass(slots=True, eq=False)
class Pass:
    """What one admitted client holds, until `Gate.leave`."""

    kind: Kind
    address: AddressKey | None
    user: UserKey | None


class Gate:
    """One per gateway."""

    def __init__(
        self,
        settings: AdmissionSettings,
        measures: Measures,
        *,
        places: int,
        refusal: Refusal,
        clock: Clock,
        rng: random.Random,
        has_users: bool = True,
    ) -> None:
        """`has_users` False: everybody is the same one (`auth.mode: none`), and limits of users mean nothing."""
        self.places = places
        self.refusal = refusal
        self.clock = clock
        self._rng = rng
        self.measures = measures
        self.refused = refused_by_kind(measures)
        self.by_second = BySecond()
        self.buckets: dict[Kind, Bucket] = {
            kind: Bucket(Rate(per_second, burst))
            for kind, per_second, burst in (
                (Kind.NEW, settings.new_per_second, settings.new_burst),
                (Kind.RESUME, settings.resumes_per_second, settings.resumes_burst),
                (Kind.READ, settings.reads_per_second, settings.reads_burst),
            )
            if per_second
        }
        self.addresses: KeyLimits[AddressKey] = KeyLimits(
            KeyedRates(_a_minute(settings.address_connects_per_minute, settings.address_connects_burst)),
            settings.address_connections,
        )
        self.users: KeyLimits[UserKey] = KeyLimits(
            KeyedRates(_a_minute(settings.user_connects_per_minute, settings.user_connects_burst)),
            settings.user_connections,
        )
        self._limits_users = has_users and self.users.is_set
        self.pressure = Pressure(
            Marks(
                settings.new_lag_seconds,
                settings.resume_lag_seconds,
                settings.new_memory_share,
                settings.resume_memory_share,
            )
        )
        self.places_taken = 0
        """Clients that were let in or are being let in."""

    @property
    def needs_addresses(self) -> bool:
        """Some limit asks for them."""
        return self.addresses.is_set

    # ---- before the credentials are known ------------------------------------------------------------------------

    def check(self, kind: Kind, address: AddressKey | None, *, has_place: bool = True, only_asks: bool = False) -> None:
        """Raises what `admit` would raise, and takes nothing. `only_asks`: it is no attempt to connect."""
        now_ns = ns(self.clock())
        self._check(kind, address, now_ns, has_place=has_place, only_asks=only_asks)
        bucket = self.buckets.get(kind)
        if bucket is not None and not bucket.has_token(now_ns):
            turn = bucket.guess(now_ns) if only_asks else bucket.book(now_ns)
            raise self._come_later(kind, turn, only_asks=only_asks)

    def failed(self, kind: Kind, address: AddressKey | None) -> None:
        """Its credentials were bad: it counts against its address like a connect, so that nobody tries for ever."""
        if address is not None:
            self.addresses.take(address, ns(self.clock()), kind.weight, has_place=False)

    # ---- afterwards ----------------------------------------------------------------------------------------------

    def check_user(self, kind: Kind, principal: Principal) -> None:
        """For one that only asks. Raises RelayError OVER_LIMIT when the user may not connect now."""
        user = self._user_of(principal)
        if user is not None:
            self._check_key("user", self.users, user, kind, ns(self.clock()), has_place=True, only_asks=True)

    def admit(
        self, kind: Kind, address: AddressKey | None, principal: Principal | None, *, has_place: bool = True
    ) -> Pass:
        """One token, and a place unless what is asked for holds none; then one `leave` follows.

        `principal` None: its token comes in the first message, and `name_user` follows. Raises RelayError, with
        nothing taken.
        """
        now_ns = ns(self.clock())
        user = None if principal is None else self._user_of(principal)
        self._check(kind, address, now_ns, has_place=has_place)
        if user is not None:
            self._check_key("user", self.users, user, kind, now_ns, has_place=has_place)
        bucket = self.buckets.get(kind)
        if bucket is not None and not bucket.take(now_ns):
            raise self._come_later(kind, bucket.book(now_ns))
        self.by_second.count(kind, now_ns)
        self.measures.admitted[kind] += 1
        self.places_taken += has_place
        if address is not None:
            self.addresses.take(address, now_ns, kind.weight, has_place=has_place)
        if user is not None:
            self.users.take(user, now_ns, kind.weight, has_place=has_place)
        return Pass(kind, address, user)

    def name_user(self, held: Pass, principal: Principal) -> None:
        """Who it is that was let in before. Raises RelayError OVER_LIMIT: the caller ends it."""
        user = self._user_of(principal)
        if user is not None:
            now_ns = ns(self.clock())
            self._check_key("user", self.users, user, held.kind, now_ns, has_place=True)
            self.users.take(user, now_ns, held.kind.weight, has_place=True)
            held.user = user

    def leave(self, held: Pass) -> None:
        self.places_taken -= 1
        if held.address is not None:
            self.addresses.leave(held.address)
        if held.user is not None:
            self.users.leave(held.user)

    # ---- decisions -----------------------------------------------------------------------------------------------

    def _check(
        self, kind: Kind, address: AddressKey | None, now_ns: int, *, has_place: bool, only_asks: bool = False
    ) -> None:
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        if has_place and self.places_taken >= self.places:
            text = "this gateway has no free place, try another one"
            raise self._refused(kind, "places", ErrorCode.BUSY, text, PLACES_AFTER_MS, only_asks=only_asks)
        reason = self.pressure.refuses(kind)
        if reason is not None:
            text = "this gateway is overloaded, try another one"
            after_ms = MEMORY_AFTER_MS if reason == "memory" else LAG_AFTER_MS
            raise self._refused(kind, reason, ErrorCode.BUSY, text, after_ms, only_asks=only_asks)
        if address is not None:
            self._check_key("address", self.addresses, address, kind, now_ns, has_place=has_place, only_asks=only_asks)

    def _check_key(
        self,
        whose: str,
        limits: KeyLimits[K],
        key: K,
        kind: Kind,
        now_ns: int,
        *,
        has_place: bool,
        only_asks: bool = False,
    ) -> None:
        over = limits.refuses(key, now_ns, kind.weight, times=kind.times, has_place=has_place)
        if over is not None:
            text = f"too many {'connects' if over.what == 'rate' else 'connections'} of this {whose}"
            after_ms = max(1, round(over.wait_seconds * 1000))
            reason = f"{whose}_{over.what}"
            raise self._refused(kind, reason, ErrorCode.OVER_LIMIT, text, after_ms, only_asks=only_asks)

    def _user_of(self, principal: Principal) -> UserKey | None:
        return (principal.tenant, principal.user) if self._limits_users else None

    # ---- refusals ------------------------------------------------------------------------------------------------

    def _come_later(self, kind: Kind, turn: Turn, *, only_asks: bool = False) -> RelayError:
        """There is no token: a time of its own, that the border must not move."""
        after_ms = max(1, round(1000 * self._rng.uniform(*turn)))
        text = "too many clients are connecting, come back at the time given"
        error = self._refused(kind, "rate", ErrorCode.BUSY, text, after_ms, only_asks=only_asks)
        error.is_spread = True
        return error

    def _refused(
        self, kind: Kind, reason: str, code: ErrorCode, text: str, after_ms: int, *, only_asks: bool
    ) -> RelayError:
        if not only_asks:
            self.refused[kind][reason] += 1
        return RelayError(code, text, {"reason": reason}, after_ms)


def refused_by_kind(measures: Measures) -> dict[Kind, Counter[str]]:
    """The counts of who was not let in, by kind and reason."""
    return {
        Kind.NEW: measures.refused_new,
        Kind.RESUME: measures.refused_resumes,
        Kind.READ: measures.refused_reads,
    }


def _a_minute(count: float, burst: int) -> Rate | None:
    return Rate(count / 60, burst) if count else None


__all__ = ["Gate", "Pass", "Refusal", "UserKey", "refused_by_kind"]
