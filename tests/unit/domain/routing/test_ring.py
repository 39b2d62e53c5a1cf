"""The ring: agreed on by all processes, even, and a change moves only what it must (R28)."""

import subprocess
import sys
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.routing.ring import Ring, session_thing
from gateway.domain.wire.ids import GatewayId, SessionId, SessionRef, Tenant

THINGS = [f"default:chat-{number}" for number in range(1_000)]
COUNTS = st.integers(min_value=1, max_value=24)
SALTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)


def members(count: int, salt: str = "") -> list[GatewayId]:
    return [GatewayId(f"gw-{salt}-{number}") for number in range(count)]


def owners(names: list[GatewayId]) -> dict[str, GatewayId | None]:
    ring = Ring(names)
    return {thing: ring.owner(thing) for thing in THINGS}


def test_order_and_repeats_of_the_members_do_not_matter() -> None:
    assert owners(members(5)) == owners(members(5)[::-1] * 2)


@given(COUNTS, SALTS)
def test_gateway_that_comes_takes_about_its_share_and_nothing_else_moves(count: int, salt: str) -> None:
    """One more: what moves goes to the new one, and is about 1/n of all."""
    before, after = owners(members(count, salt)), owners(members(count + 1, salt))

    moved = [thing for thing in THINGS if before[thing] != after[thing]]

    assert {members(count + 1, salt)[-1]} >= {after[thing] for thing in moved}
    assert len(moved) <= 2.2 * len(THINGS) / (count + 1)


@given(COUNTS, SALTS)
def test_gateway_that_leaves_moves_only_what_was_its_own(count: int, salt: str) -> None:
    before, after = owners(members(count + 1, salt)), owners(members(count, salt))

    assert all(before[thing] == members(count + 1, salt)[-1] for thing in THINGS if before[thing] != after[thing])


def test_things_are_spread_over_all_members() -> None:
    shares = Counter(owners(members(4)).values())

    assert 4 == len(shares)
    assert all(170 < share < 340 for share in shares.values())


def test_processes_with_other_hash_seeds_agree() -> None:
    """Python's own hash is salted; nothing of it may get in."""
    code = (
        "from gateway.domain.routing.ring import Ring\n"
        "ring = Ring(['gw-c', 'gw-a', 'gw-b'])\n"
        "print([ring.owner(f'default:chat-{n}') for n in range(1000)])"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert 1 == len(answers)


def test_sessions_whose_names_run_together_are_different_things() -> None:
    refs = [SessionRef(Tenant("a"), SessionId("b:c")), SessionRef(Tenant("a:b"), SessionId("c"))]

    assert 2 == len({session_thing(ref) for ref in refs})


def test_without_members_nobody_is_preferred() -> None:
    assert Ring().owner("thing") is None
