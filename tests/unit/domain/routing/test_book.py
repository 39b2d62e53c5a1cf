"""Which sessions try a canary: a share by hash that stays the same, named tenants, and what operators decided."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.routing.book import Decision, RouteBook, RouteFile, Slot, Verdict, place_of
from gateway.domain.routing.explain import explain
from gateway.domain.routing.table import MessageType
from gateway.domain.wire.ids import session_key
from tests.unit.domain.routing.located import file_of

KEYS = st.binary(min_size=1, max_size=40)


def book(share: str = "10%", more: str = "", decision: Verdict | None = None) -> RouteBook:
    file = file_of(
        f"version: v1\nroutes: {{}}\n"
        f"canary: {{version: v2, share: {share}{more}, routes: {{control: {{'*': {{lane: low}}}}}}}}\n"
    )
    assert file.canary is not None
    return RouteBook(file, None if decision is None else Decision(file.canary.table.digest, decision))


@pytest.mark.parametrize("name", ["chat-{}", "{}", "user/{}/session", "2026-05-01T{}"])
def test_ten_percent_of_a_thousand_sessions_are_about_a_hundred(name: str) -> None:
    it = book()

    tried = sum(
        it.slot_for("default", session_key("default", name.format(number))) is Slot.CANARY for number in range(1000)
    )

    assert 70 <= tried <= 130


@pytest.mark.parametrize("seed", range(5))
def test_so_are_those_of_random_names(seed: int) -> None:
    it, rng = book(), random.Random(seed)

    tried = sum(it.slot_for("t", session_key("t", f"{rng.getrandbits(64):x}")) is Slot.CANARY for _ in range(1000))

    assert 70 <= tried <= 130


def test_a_session_has_its_place_for_ever() -> None:
    assert [0.001, 0.308, 0.843] == [round(place_of(f"default:s{number}".encode()), 3) for number in range(3)]


@given(KEYS, st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_has_all_sessions_of_the_smaller_one(key: bytes, one: float, other: float) -> None:
    small, large = sorted((one, other))

    assert not (place_of(key) < small) or place_of(key) < large
    assert 0 <= place_of(key) < 1


def test_a_tenant_that_is_named_tries_it_with_all_its_sessions() -> None:
    it = book("0", ", tenants: [acme]")

    assert {Slot.CANARY} == {it.slot_for("acme", session_key("acme", f"s{n}")) for n in range(50)}
    assert {Slot.CURRENT} == {it.slot_for("other", session_key("other", f"s{n}")) for n in range(50)}


@pytest.mark.parametrize(
    ("verdict", "name", "label"),
    [(Verdict.PROMOTED, "v2", "v2"), (Verdict.ROLLED_BACK, "v1", "v1"), (None, "v1", "v1+v2")],
)
def test_what_was_decided_holds_for_all_sessions(verdict: Verdict | None, name: str, label: str) -> None:
    it = book("50%", ", tenants: [acme]", verdict)
    names = {it.table_for("acme", session_key("acme", f"s{number}")).name for number in range(50)}

    assert (name, label) == (it.main.name, it.label)
    assert names == ({"v2"} if verdict is None else {name})


def test_a_decision_about_another_table_says_nothing() -> None:
    it = RouteBook(book().file, Decision("another", Verdict.PROMOTED))

    assert (None, True, "v1") == (it.verdict, it.is_split, it.main.name)


def test_without_a_canary_there_is_one_table() -> None:
    it = RouteBook(RouteFile(book().file.current), Decision("x", Verdict.PROMOTED))

    assert ("v1", False, Slot.CURRENT) == (it.label, it.is_split, it.slot_for("t", b"k"))


def test_explain_says_whose_table_and_which_row() -> None:
    it = book("100%")

    on_trial = explain(it, "default", "s", MessageType.CONTROL, "typing")
    in_general = explain(it, "default", None, MessageType.CONTROL, "typing")

    assert ("v2", "canary", "control.*") == (on_trial["version"], on_trial["table"], on_trial["row"])
    assert ("v1", "current") == (in_general["version"], in_general["table"])
    assert ("low", "highest") == (on_trial["route"]["lane"], in_general["route"]["lane"])  # type: ignore[index]
