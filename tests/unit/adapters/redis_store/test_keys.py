"""Key names: injective, one slot a session, no id ever reaches a pattern (failure catalogue R10, R24)."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from redis.crc import key_slot

from gateway.adapters.redis_store.keys import session_keys, user_key
from gateway.domain.wire.ids import InvalidId, SessionId, SessionRef, Tenant, UserId

IDS = st.text(st.characters(exclude_categories=("C", "Zl", "Zp", "Zs")) | st.sampled_from(" :{}*?[]%,"), min_size=1)
IDS = IDS.filter(lambda text: text.isprintable() and len(text.encode()) <= 128)


def ref(tenant: str, session: str) -> SessionRef:
    return SessionRef(Tenant(tenant), SessionId(session))


@given(IDS, IDS)
def test_all_keys_of_a_session_are_in_one_slot(tenant: str, session: str) -> None:
    keys = session_keys(ref(tenant, session))

    assert len({key_slot(key) for key in keys}) == 1
    assert len(set(keys)) == len(keys)


@given(IDS, IDS)
def test_a_tag_has_no_character_with_a_meaning_of_its_own(tenant: str, session: str) -> None:
    for key in session_keys(ref(tenant, session)):
        assert re.fullmatch(rb"rr:\{[A-Za-z0-9_.~%-]+:[A-Za-z0-9_.~%-]+\}:[a-z]+", key)
    assert re.fullmatch(rb"rr:user:\{[A-Za-z0-9_.~%-]+,[A-Za-z0-9_.~%-]+\}", user_key(Tenant(tenant), UserId(session)))


@given(st.tuples(IDS, IDS), st.tuples(IDS, IDS))
def test_two_sessions_never_share_a_key(one: tuple[str, str], other: tuple[str, str]) -> None:
    assume(one != other)

    assert not set(session_keys(ref(*one))) & set(session_keys(ref(*other)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b:c"), ("a:b", "c")),
        (("prod", "x"), ("prod2", "x")),
        (("a", "é"), ("a", "e\u0301")),
        (("a", "%3A"), ("a", ":")),
    ],
)
def test_pairs_that_look_alike(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert session_keys(ref(*one)).meta != session_keys(ref(*other)).meta


@pytest.mark.parametrize("ident", ["", "a\nb", "a\0b", "a\tb", "x" * 129, "é" * 65])
def test_ids_outside_the_limits_get_no_key(ident: str) -> None:
    with pytest.raises(InvalidId):
        ref("t", ident)
    with pytest.raises(InvalidId):
        ref(ident, "s")
