"""Is the peer still there: heartbeats, misses, answers after silence, and which pongs count (A01, A02, A12, P05)."""

import random
from math import inf

import pytest

from gateway.domain.sessions.liveness import Due, Liveness

HEARTBEAT, SILENCE, ANSWER, MISSES = 20.0, 5.0, 10.0, 3


def look(liveness: Liveness, now: float, written_at: float = 0.0) -> Due:
    """As the wheel does: a ping that is due is sent."""
    due = liveness.look(now, written_at, silence_seconds=SILENCE, answer_seconds=ANSWER, max_missed=MISSES)
    if due is Due.PING:
        liveness.next_nonce(now)
    return due


def life(liveness: Liveness, until: float, *, start: float = 0.0, step: float = 1.0) -> tuple[float, list[float]]:
    """When it is found dead (inf: never) and when pings went out, with nothing heard and nothing written."""
    pings, now = [], start
    while now < until:
        now += step
        match look(liveness, now, start):
            case Due.PING:
                pings.append(now)
            case Due.DEAD:
                return now, pings
            case Due.NOTHING:
                pass
    return inf, pings


def test_a_silent_peer_gets_a_ping_each_heartbeat_and_is_dead_after_three_misses() -> None:
    dead_at, pings = life(Liveness(HEARTBEAT, 0), 200)

    assert (dead_at, pings) == (80, [20, 40, 60])


@pytest.mark.parametrize("heartbeat", [5.0, 25.0])
def test_the_negotiated_heartbeat_counts(heartbeat: float) -> None:
    dead_at, pings = life(Liveness(heartbeat, 0), 200)

    assert (dead_at, pings) == (4 * heartbeat, [heartbeat, 2 * heartbeat, 3 * heartbeat])


def test_a_peer_that_answers_lives_for_ever() -> None:
    liveness = Liveness(HEARTBEAT, 0)
    for now in range(1, 1_000):
        if liveness.look(now, 0, silence_seconds=SILENCE, answer_seconds=ANSWER, max_missed=MISSES) is Due.PING:
            assert liveness.pong(liveness.next_nonce(now), now + 0.25) == 0.25

    assert liveness.missed == 0


def test_any_sign_of_life_answers_a_ping() -> None:
    liveness = Liveness(HEARTBEAT, 0)
    look(liveness, 20)
    look(liveness, 40)
    missed = liveness.missed
    liveness.heard(41)

    dead_at, _ = life(liveness, 300, start=41)

    assert missed == 1
    assert dead_at == 120  # the pings of 60, 80 and 100 were missed


def test_the_round_trip_is_that_of_the_newest_ping_and_counted_once() -> None:
    liveness = Liveness(HEARTBEAT, 0)
    first = liveness.next_nonce(20)
    second = liveness.next_nonce(40)

    late = liveness.pong(first, 40.5)
    right = liveness.pong(second, 41)
    repeated = liveness.pong(second, 42)

    assert (late, right, repeated) == (None, 1, None)


@pytest.mark.parametrize("payload", [b"", b"x", (0).to_bytes(8, "big"), (1).to_bytes(8, "big"), b"\xff" * 125])
def test_a_pong_that_nobody_asked_for_measures_nothing(payload: bytes) -> None:
    assert Liveness(HEARTBEAT, 0).pong(payload, 3) is None


def test_an_old_pong_is_a_sign_of_life_all_the_same() -> None:
    liveness = Liveness(HEARTBEAT, 0)
    old = liveness.next_nonce(20)
    look(liveness, 40)
    look(liveness, 60)

    liveness.pong(old, 61)

    assert (liveness.missed, liveness.heard_at) == (0, 61)


def test_a_write_after_silence_asks_at_once_and_must_be_answered_in_time() -> None:
    liveness = Liveness(HEARTBEAT, 0)

    asked = look(liveness, 6.5, written_at=6)
    waiting = look(liveness, 15.9, written_at=15)
    dead = look(liveness, 16, written_at=15)

    assert (asked, waiting, dead) == (Due.PING, Due.NOTHING, Due.DEAD)


def test_a_write_within_the_silence_asks_nothing() -> None:
    assert look(Liveness(HEARTBEAT, 0), 5.5, written_at=4.99) is Due.NOTHING


def test_anything_heard_settles_the_answer() -> None:
    liveness = Liveness(HEARTBEAT, 0)
    look(liveness, 6.5, written_at=6)
    liveness.heard(15.9)

    assert look(liveness, 16, written_at=16) is Due.NOTHING
    assert liveness.answer_by == inf


def test_a_peer_is_not_dead_before_it_was_asked_however_late_the_look() -> None:
    liveness = Liveness(HEARTBEAT, 0)

    after_a_freeze = look(liveness, 40, written_at=6)

    assert after_a_freeze is Due.PING
    assert liveness.answer_by == 49


def test_a_freeze_of_our_own_counts_as_one_miss_at_most() -> None:
    liveness = Liveness(HEARTBEAT, 0)
    look(liveness, 20)

    look(liveness, 500)

    assert liveness.missed == 1


def test_what_was_heard_before_is_no_news() -> None:
    liveness = Liveness(HEARTBEAT, 0)
    liveness.heard(10)

    liveness.showed_life(9)
    earlier = liveness.heard_at
    liveness.showed_life(11)

    assert (earlier, liveness.heard_at) == (10, 11)


def test_a_sign_of_life_from_before_the_newest_ping_forgives_no_miss() -> None:
    """The kernel's clock is coarse: what it says of one moment is a little later each time it is asked."""
    liveness = Liveness(HEARTBEAT, 0)
    look(liveness, 20)
    look(liveness, 40)

    liveness.showed_life(0.004)
    liveness.showed_life(39.9)
    before = liveness.missed
    liveness.showed_life(40.1)

    assert (before, liveness.missed) == (1, 0)


def test_it_is_silent_from_its_newest_ping_until_anything_comes() -> None:
    liveness = Liveness(HEARTBEAT, 0)
    assert liveness.silent_seconds(5) == 0
    liveness.next_nonce(10)
    assert (liveness.silent_seconds(12.5), liveness.waits_for_pong) == (2.5, True)

    liveness.heard(13)
    assert (liveness.silent_seconds(14), liveness.waits_for_pong) == (0, True)  # alive, and the pong is still out

    liveness.pong(liveness.next_nonce(20), 21)
    assert (liveness.silent_seconds(25), liveness.waits_for_pong) == (0, False)


def test_a_miss_is_foreseen_exactly_where_a_look_would_count_one() -> None:
    """Property: whatever happens, `look` counts a miss or finds a death only where `is_about_to_miss` said so."""
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(500):
        liveness, now, written = Liveness(HEARTBEAT, 0), 0.0, 0.0
        nonce = b""
        for _ in range(60):
            now += rng.uniform(0.1, 9)
            match rng.randrange(4):
                case 0:
                    written = now
                case 1:
                    liveness.heard(now)
                case 2:
                    liveness.pong(nonce, now)
                case _:
                    pass
            foreseen, before = liveness.is_about_to_miss(now), liveness.missed
            due = liveness.look(now, written, silence_seconds=SILENCE, answer_seconds=ANSWER, max_missed=MISSES)
            if due is Due.DEAD or liveness.missed > before:
                assert foreseen, f"seed {seed}"
            if due is Due.DEAD:
                assert now - liveness.heard_at >= min(ANSWER - 1, HEARTBEAT), f"seed {seed}"
                break
            if due is Due.PING:
                nonce = liveness.next_nonce(now)
