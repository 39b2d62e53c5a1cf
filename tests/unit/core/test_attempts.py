"""Store calls repeated until a deadline; the caller learns whether an unheard one may have worked (G9)."""

import asyncio
import random

import pytest

from gateway.core.attempts import STALE_NOTES, Attempts
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.ports import StoreUnavailable, Unreplicated
from gateway.settings import RedisSettings

pytestmark = pytest.mark.looptime


def attempts() -> Attempts:
    return Attempts(RedisSettings(deadline_seconds=2), asyncio.get_running_loop().time, random.Random(1))


class Calls:
    """Each call does the next of `outcomes`; the last one stays."""

    def __init__(self, *outcomes: StoreUnavailable | str) -> None:
        self.outcomes = list(outcomes)
        self.count = 0

    async def __call__(self) -> str:
        self.count += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, StoreUnavailable):
            raise outcome
        return outcome


def away(*, unknown: bool) -> StoreUnavailable:
    return StoreUnavailable("away", outcome_unknown=unknown)


@pytest.mark.parametrize("unknown", [True, False])
async def test_an_answer_after_a_failure_tells_whether_the_failed_attempt_may_have_worked(unknown: bool) -> None:
    calls = Calls(away(unknown=unknown), "yes")

    assert ("yes", unknown) == await attempts().until(calls)
    assert 2 == calls.count


@pytest.mark.parametrize(("unknown", "outcome"), [(True, "unknown"), (False, "not_written")])
async def test_at_the_deadline_the_outcome_is_told(unknown: bool, outcome: str) -> None:
    began = asyncio.get_running_loop().time()

    with pytest.raises(RelayError) as refused:
        await attempts().until(Calls(away(unknown=unknown)))

    assert (ErrorCode.UNAVAILABLE, outcome) == (refused.value.code, refused.value.details["outcome"])
    assert 2 <= asyncio.get_running_loop().time() - began < 2.5


@pytest.mark.parametrize(("unknown", "outcome"), [(True, "unknown"), (False, "not_written")])
async def test_too_few_replicas_are_named_at_the_deadline(unknown: bool, outcome: str) -> None:
    """What failed last counts: Redis answers again, and replicas are missing."""
    calls = Calls(away(unknown=False), Unreplicated("too few", outcome_unknown=unknown))

    with pytest.raises(RelayError) as refused:
        await attempts().until(calls)

    assert (ErrorCode.UNREPLICATED, outcome) == (refused.value.code, refused.value.details["outcome"])
    assert refused.value.rule.retryable


async def test_a_stale_note_is_noted_again_before_the_state_is_written_again() -> None:
    done: list[str] = []

    async def note() -> int:
        done.append("note")
        return len(done)

    async def write(due_ms: int) -> str:
        done.append(f"write {due_ms}")
        return "stale" if due_ms == 1 else "written"

    assert ("written", False) == await attempts().noted(note, write, lambda outcome: outcome == "stale")
    assert ["note", "write 1", "note", "write 3"] == done


async def test_notes_that_stay_stale_are_given_up() -> None:
    writes = Calls("stale")

    async def note() -> int:
        return 1

    outcome, _ = await attempts().noted(note, lambda _: writes(), lambda outcome: outcome == "stale")

    assert ("stale", STALE_NOTES) == (outcome, writes.count)
