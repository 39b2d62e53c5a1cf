"""The application's control on its way to connections: at once, only while it is fresh, never in the way of text."""

import pytest

from gateway.core.routing.broadcast import ControlListener
from tests.unit.core.stage import Stage, settle, stage

KIB = 1024


def tell(it: Stage, lane: str = "highest", deadline: bytes = b"", payload: bytes = b'{"kind":"typing"}') -> None:
    ControlListener(it.hub, it.measures).on_control([it.log.ref.key, lane.encode(), deadline, payload])


async def test_everybody_in_the_session_gets_it_without_a_number() -> None:
    async with stage() as it:
        _, one = await it.connect("c1")
        _, two = await it.connect("c2")
        tell(it)
        await settle()

        for link in (one, two):
            frame = link.frames[-1]
            assert ("control", {"kind": "typing"}, it.log.ref.session) == (
                frame["type"], frame["payload"], frame["session_id"],
            )  # fmt: skip
            assert "seq" not in frame
        assert 2 == it.measures.control_pushes["written"]


@pytest.mark.parametrize(
    ("lane", "outcome"), [("highest", "written"), ("high", "written"), ("medium", "behind"), ("low", "behind")]
)
async def test_who_is_behind_with_text_gets_only_what_goes_ahead_of_it(lane: str, outcome: str) -> None:
    async with stage() as it:
        connection, _ = await it.connect()
        connection.fall_behind()
        tell(it, lane)

        assert {outcome: 1} == dict(it.measures.control_pushes)


@pytest.mark.parametrize(("left_ms", "outcome"), [(-1, "late"), (0, "late"), (60_000, "written")])
async def test_what_is_past_its_deadline_is_dropped(left_ms: int, outcome: str) -> None:
    async with stage() as it:
        await it.connect()
        now_ms = int(it.hub.shared.wall_clock() * 1000)
        tell(it, deadline=b"%d" % (now_ms + left_ms))

        assert {outcome: 1} == dict(it.measures.control_pushes)


async def test_who_does_not_read_is_spared() -> None:
    async with stage(unsent_bytes=16 * KIB) as it:
        _, link = await it.connect()
        link.stall()
        it.append(*("x" * 2_000 for _ in range(30)))
        tell(it)
        link.go_on()
        await settle()

        assert {"full": 1} == dict(it.measures.control_pushes)


async def test_a_session_that_is_not_here_and_what_is_malformed_harm_nobody() -> None:
    async with stage() as it:
        await it.connect()
        listener = ControlListener(it.hub, it.measures)
        listener.on_control([b"default:other", b"high", b"", b"{}"])
        with pytest.raises(ValueError, match="valid Lane"):
            listener.on_control([it.log.ref.key, b"fast", b"", b"{}"])
        assert {} == dict(it.measures.control_pushes)
