"""Unit tests of gateway.core.rhythm: who is told how tokens come."""

import pytest

from gateway.core.pacing import LONGEST_SECONDS, Pacing
from gateway.core.rhythm import RhythmListener, rhythm_notice
from gateway.domain.streams.tempo import Rhythm
from gateway.domain.wire.bus import decode_fields
from gateway.domain.wire.ids import RunId
from tests.unit.core.stage import Stage, settle, stage

KIB = 1024


def tell(it: Stage) -> None:
    notice = rhythm_notice(it.log.ref.key, RunId("r1"), Rhythm(41.5, 24))
    RhythmListener(it.hub).on_rhythm(decode_fields(notice))


async def test_only_those_who_asked_are_told() -> None:
    async with stage() as it:
        asking, heard = await it.connect("c1")
        _, other = await it.connect("c2")
        asking.wants_rhythm = True

        tell(it)
        await settle()

        assert heard.frames[-1]["payload"] == {"kind": "rhythm", "run": "r1", "tokens_per_s": 41.5, "gap_ms": 24}
        assert other.kinds() == ["welcome"]


async def test_who_does_not_read_is_spared() -> None:
    async with stage(unsent_bytes=16 * KIB) as it:
        connection, link = await it.connect()
        connection.wants_rhythm = True
        link.stall()
        it.append(*("x" * 2_000 for _ in range(30)))

        tell(it)
        link.go_on()
        await settle()

        assert not [frame for frame in link.frames if frame["payload"]["kind"] == "rhythm"]


async def test_who_comes_again_and_again_has_better_things_to_do() -> None:
    """A13: until it has been live for a while."""
    async with stage() as it:
        connection, link = await it.connect()
        connection.wants_rhythm, connection.pacing = True, Pacing(it.now[0])
        tell(it)
        before = link.kinds()
        it.now[0] += LONGEST_SECONDS
        tell(it)
        await settle()

        assert (before, link.kinds()) == (["welcome"], ["welcome", "rhythm"])


async def test_a_session_without_connections_is_nothing_new() -> None:
    async with stage() as it:
        tell(it)


@pytest.mark.parametrize("fields", [[b"default:chat-1"], [b"default:chat-1", b"[]"], [b"default:chat-1", b"{"]])
async def test_what_is_no_rhythm_is_malformed(fields: list[bytes]) -> None:
    async with stage() as it:
        await it.connect()
        fields[0] = it.log.ref.key
        with pytest.raises((ValueError, IndexError)):
            RhythmListener(it.hub).on_rhythm(fields)
