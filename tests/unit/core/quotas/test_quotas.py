"""Appends against quotas: what is charged, what is refused, what gateways make of what they tell each other."""

import asyncio
from typing import Any

import pytest

from gateway.core.quotas import quotas as quotas_module
from gateway.core.quotas.quotas import Quotas
from gateway.domain.measures import Measures
from gateway.domain.quotas import TenantUse
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant
from gateway.ports import Appended, ItemResult
from gateway.settings import QuotaSettings

REF = SessionRef(Tenant("acme"), SessionId("s"))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make(clock: Clock | None = None, **settings: Any) -> Quotas:
    """A gateway that knows that it is alone."""
    quotas = Quotas(QuotaSettings(burst_seconds=1, **settings), Measures(), clock or Clock())
    quotas.learn([])
    return quotas


def granted(
    quotas: Quotas,
    count: int = 1,
    size_bytes: int = 10,
    ref: SessionRef = REF,
    tries: int = 1_000,
    *,
    is_person: bool = False,
) -> int:
    """How often it is let in before it is refused."""
    for number in range(tries):
        try:
            quotas.check_append(ref, count, size_bytes, is_person=is_person)
        except RelayError as exc:
            if exc.code is not ErrorCode.QUOTA_EXCEEDED:
                raise
            return number
    return tries


def ref_of(tenant: str, session: str = "s") -> SessionRef:
    return SessionRef(Tenant(tenant), SessionId(session))


def appended(head: int, line: bytes = b"e.f") -> Appended:
    """The answer to one message."""
    return Appended((ItemResult(head, duplicate=False),), Line(line), head, False, ())


def test_without_settings_there_are_none() -> None:
    """What nobody asked for costs nothing."""
    assert Quotas.of(QuotaSettings(), Measures(), Clock()) is None


async def test_a_tenant_named_without_limits_is_watched() -> None:
    """Nothing is refused; its usage is told."""
    clock = Clock()
    quotas = make(clock, tenants={"acme": {}})

    assert granted(quotas, tries=100) == 100
    clock.now += 1
    assert await quotas.usage() == {"acme": TenantUse(0, 0, 100.0, 1_000.0)}


@pytest.mark.parametrize(
    ("settings", "count", "size_bytes", "times", "quota"),
    [
        ({"appends_per_second": 10}, 1, 10, 10, "appends_per_second"),
        ({"appends_per_second": 10}, 5, 10, 2, "appends_per_second"),
        ({"bytes_per_second": 2_048}, 1, 512, 4, "bytes_per_second"),
        ({"session_appends_per_second": 7}, 1, 10, 7, "session_appends_per_second"),
        ({"session_bytes_per_second": 2_048}, 1, 1_024, 2, "session_bytes_per_second"),
    ],
)
def test_each_quota_is_refused_by_its_name(
    settings: dict[str, Any], count: int, size_bytes: int, times: int, quota: str
) -> None:
    """Exactly when it is used up, and counted."""
    quotas = make(**settings)

    assert granted(quotas, count, size_bytes) == times
    with pytest.raises(RelayError) as refused:
        quotas.check_append(REF, count, size_bytes)
    assert refused.value.details["quota"] == quota
    assert refused.value.after_ms is not None
    assert refused.value.after_ms > 0
    assert quotas.measures.quota_refusals == {quota: 2}


def test_a_refusal_charges_nothing() -> None:
    """Also not the quotas that would have let it in: after the wait that it names it passes."""
    clock = Clock()
    quotas = make(clock, appends_per_second=100, session_appends_per_second=10)
    granted(quotas)
    for _ in range(50):
        granted(quotas)

    assert granted(quotas, ref=ref_of("acme", "another")) == 10
    clock.now += 0.1001
    assert granted(quotas) == 1


def test_an_override_replaces_what_it_names_only() -> None:
    """Null is no limit; other tenants have the default."""
    tenants = {"more": {"appends_per_second": 20}, "free": {"appends_per_second": None}}
    quotas = make(appends_per_second=10, bytes_per_second=1_024, tenants=tenants)

    assert granted(quotas, ref=ref_of("more")) == 20
    assert granted(quotas, ref=ref_of("free"), size_bytes=1, tries=100) == 100
    assert granted(quotas, ref=ref_of("free"), size_bytes=512) == 1
    assert granted(quotas, ref=ref_of("else")) == 10


def test_people_go_one_burst_deeper() -> None:
    """What they say is charged, so agents wait the longer; it has a bound as well."""
    clock = Clock()
    quotas = make(clock, appends_per_second=10)
    granted(quotas)

    assert granted(quotas, is_person=True) == 10
    clock.now += 1.05
    assert granted(quotas) == 0


def test_messages_of_other_gateways_are_seen_by_the_head() -> None:
    """A session has one rate however its producers spread."""
    clock = Clock()
    quotas = make(clock, session_appends_per_second=10)
    quotas.check_append(REF, 1, 10)
    quotas.saw(REF, appended(1))

    quotas.check_append(REF, 1, 10)
    quotas.saw(REF, appended(6))

    assert granted(quotas) == 4


def test_own_messages_are_not_counted_twice() -> None:
    """Answers may also come in another order than that in which they were made."""
    quotas = make(session_appends_per_second=10)
    quotas.saw(REF, appended(100))
    quotas.check_append(REF, 1, 10)
    quotas.saw(REF, appended(100))
    for _ in range(3):
        quotas.check_append(REF, 1, 10)
    for head in (103, 101, 102):
        quotas.saw(REF, appended(head))

    assert granted(quotas) == 6


@pytest.mark.parametrize("line", [b"e.f", b"e.g"])
def test_what_is_on_its_way_when_a_line_begins_is_not_counted_twice(line: bytes) -> None:
    """A producer that begins with many at once had used up its burst twice, and a fork did it again."""
    quotas = make(session_appends_per_second=10)
    quotas.check_append(REF, 1, 10)
    if line != b"e.f":
        quotas.saw(REF, appended(1))
        quotas.check_append(REF, 1, 10)
    for _ in range(3):
        quotas.check_append(REF, 1, 10)
    for head in (11, 12, 13, 14):
        quotas.saw(REF, appended(head, line))

    assert granted(quotas) == (6 if line == b"e.f" else 5)


def test_another_line_of_the_log_begins_anew() -> None:
    """After a fork heads cannot be compared."""
    quotas = make(session_appends_per_second=10)
    quotas.check_append(REF, 1, 10)
    quotas.saw(REF, appended(5))

    quotas.saw(REF, appended(900, b"e.g"))

    assert granted(quotas) == 9


@pytest.mark.parametrize("is_known", [False, True])
def test_a_share_is_that_of_the_last_word_also_of_who_was_idle(*, is_known: bool) -> None:
    """Shares of those who ask for nothing are not worked out each second: there may be thousands."""
    clock = Clock()
    quotas = make(clock, appends_per_second=100)
    if is_known:
        quotas.check_append(REF, 1, 10)
    quotas.learn([{}])
    quotas.learn([{}, {"acme": TenantUse(0, 0, 100.0, 0.0)}])
    clock.now += 10

    assert granted(quotas) == 1


def test_two_gateways_split_a_rate() -> None:
    """Evenly as long as nothing is known of demand."""
    quotas = make(appends_per_second=100)
    quotas.learn([{}])

    assert granted(quotas) == 50


def test_before_others_were_heard_a_part_is_granted() -> None:
    """There may be some."""
    quotas = Quotas(QuotaSettings(burst_seconds=1, appends_per_second=100), Measures(), Clock())

    assert granted(quotas) == 25


def test_a_tenant_that_comes_later_has_the_share_that_is_left() -> None:
    """By what the others told before."""
    quotas = make(appends_per_second=100)
    quotas.learn([{"acme": TenantUse(appends=100.0)}])

    quotas.check_append(REF, 1, 10)

    assert granted(quotas) < 10


async def test_who_is_refused_asks_for_all_and_hurries() -> None:
    """Once: when it was told, there is nothing to hurry for."""
    clock, hurries = Clock(), []
    quotas = make(clock, appends_per_second=100)
    quotas.learn([{}])
    quotas.on_short = lambda: hurries.append(clock.now)
    granted(quotas)
    clock.now += 0.2
    told = (await quotas.usage())["acme"]
    granted(quotas)

    assert hurries == [100.0]
    assert told.appends == 100.0


def test_alone_nobody_is_hurried() -> None:
    """Nobody could give it more."""
    quotas = make(appends_per_second=10)
    quotas.on_short = pytest.fail

    assert granted(quotas) == 10


async def test_what_was_told_of_the_last_second_is_a_rate() -> None:
    """It fades when traffic ends; a tenant without any is not told of."""
    clock = Clock()
    quotas = make(clock, appends_per_second=1_000)
    quotas.check_append(REF, 30, 600)
    clock.now += 2
    first = (await quotas.usage())["acme"].appends
    clock.now += 2
    second = (await quotas.usage())["acme"].appends
    clock.now += 60
    third = (await quotas.usage())["acme"].appends

    assert first == 15
    assert 0 < second < first / 2
    assert third < 0.001


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest unused goes."""
    monkeypatch.setattr(quotas_module, "MAX_TENANTS", 3)
    monkeypatch.setattr(quotas_module, "MAX_SESSIONS", 3)
    quotas = make(appends_per_second=10, session_appends_per_second=10)
    for name in ("a", "b", "c"):
        granted(quotas, ref=ref_of(name))
    assert granted(quotas, ref=ref_of("a")) == 0

    granted(quotas, ref=ref_of("d"))

    assert granted(quotas, ref=ref_of("a")) == 0
    assert granted(quotas, ref=ref_of("b")) == 10


async def test_few_tenants_are_told_those_near_their_quotas_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the others need most."""
    monkeypatch.setattr(quotas_module, "MAX_TOLD", 1)
    clock = Clock()
    quotas = make(clock, tenants={"small": {"appends_per_second": 10}, "large": {"appends_per_second": 1_000}})
    quotas.check_append(ref_of("small"), 8, 1)
    quotas.check_append(ref_of("large"), 100, 1)
    clock.now += 1

    assert (await quotas.usage()).keys() == {"small"}


@pytest.mark.parametrize(("tenants", "turns"), [(1, 0), (2, 1), (9, 4)])
async def test_many_tenants_are_looked_at_in_turns(tenants: int, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text of others is delivered in between; nobody is left out."""
    monkeypatch.setattr(quotas_module, "TENANTS_A_TURN", 2)
    quotas = make(Clock(), connections=5)
    for number in range(tenants):
        quotas.presence.joined(Tenant(f"t{number}"), is_new_session=True)
    had = 0

    async def others() -> None:
        nonlocal had
        while True:
            await asyncio.sleep(0)
            had += 1

    busy = asyncio.ensure_future(others())
    await asyncio.sleep(0)
    told = await quotas.usage()
    busy.cancel()

    assert (len(told), had) == (tenants, turns)


async def test_only_who_is_limited_or_named_is_told() -> None:
    """Others' names are nobody's affair."""
    clock = Clock()
    quotas = make(clock, tenants={"acme": {"connections": 5}})
    quotas.presence.joined(Tenant("unnamed"), is_new_session=True)
    quotas.presence.joined(Tenant("acme"), is_new_session=True)
    clock.now += 1

    assert await quotas.usage() == {"acme": TenantUse(1, 1, 0.0, 0.0)}


def test_the_report_adds_up_all_gateways() -> None:
    """And knows what is here."""
    quotas = make(tenants={"acme": {"connections": 5, "session_bytes_per_second": 2_048}})
    quotas.presence.joined(Tenant("acme"), is_new_session=True)
    quotas.learn([{"acme": TenantUse(2, 1, 3.0, 4.0)}, {"acme": TenantUse(1, 1, 0.0, 0.0), "else": TenantUse(9)}])

    (row,) = quotas.report()

    assert row["connections"] == {"here": 1, "everywhere": 4, "limit": 5}
    assert row["sessions"] == {"here": 1, "everywhere": 3, "limit": None}
    assert row["appends_per_second"] == {"here": 0, "everywhere": 3, "limit": None}
    assert row["session_bytes_per_second"] == {"limit": 2_048}


def test_only_limited_tenants_have_a_meter() -> None:
    """Streams of the others are read as ever."""
    quotas = make(tenants={"acme": {"bytes_per_second": 1_024}, "present": {"connections": 1}})

    assert quotas.meter(REF) is not None
    assert quotas.meter(ref_of("else")) is None
