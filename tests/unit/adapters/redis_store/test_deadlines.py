"""Where deadlines are kept on a cluster."""

import pytest

from gateway.adapters.redis_store.deadlines import shard_of_slot, slot_due_key
from gateway.adapters.redis_store.keys import session_keys
from gateway.adapters.resp import SLOTS, slot_of
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant
from gateway.ports import DUE_SHARDS


@pytest.mark.parametrize("shard", range(DUE_SHARDS))
def test_the_key_of_a_shard_is_among_its_own_slots(shard: int) -> None:
    width = SLOTS // DUE_SHARDS

    assert shard * width <= slot_of(slot_due_key(shard)) < (shard + 1) * width


def test_a_session_s_deadlines_are_near_its_keys() -> None:
    """When one server is away, sessions of the others go on."""
    for number in range(200):
        session = SessionRef(Tenant("t"), SessionId(f"s{number}"))
        slot = slot_of(session_keys(session).meta)

        assert abs(slot - slot_of(slot_due_key(shard_of_slot(session.key)))) < SLOTS // DUE_SHARDS
