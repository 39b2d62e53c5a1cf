"""A session over minutes of virtual time, on channels without a network: attempts, waits, climbs."""

import asyncio
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from relayrouter import Session, State, Timing, connect, running
from relayrouter.channel import Channel, Circumstances
from relayrouter.endings import After, Ending, broken, closed
from relayrouter.messages import Frame
from relayrouter.states import ChannelKind

from sdk.python.tests.frame_texts import control, frame, message, welcome
from sdk.python.tests.scripted import States

pytestmark = pytest.mark.looptime


class Scene:
    """What happens on each channel: a refusal, or frames at times and an end."""

    def __init__(self, *steps: tuple[float, Frame | Ending], refusal: Ending | None = None) -> None:
        self.steps = steps
        self.refusal = refusal


class Fake(Channel):
    kind: ClassVar[ChannelKind] = ChannelKind.WEBSOCKET
    scenes: ClassVar[list[Scene]] = []
    opened: ClassVar[list[tuple[ChannelKind, float, dict[str, str]]]] = []
    alive: ClassVar[set[Channel]] = set()
    is_open_slow: ClassVar[bool] = False

    def __init__(self, about: Circumstances, query: dict[str, str]) -> None:
        super().__init__(about, query)
        self._scene = Fake.scenes.pop(0) if len(Fake.scenes) > 1 else Fake.scenes[0]
        self._steps = iter(self._scene.steps)
        Fake.opened.append((self.kind, about.clock(), query))

    async def open(self) -> Ending | None:
        self.was_answered = True
        if self._scene.refusal is None:
            Fake.alive.add(self)
        return self._scene.refusal

    async def receive(self) -> Frame | Ending:
        try:
            seconds, what = next(self._steps)
        except StopIteration:
            await asyncio.Event().wait()
            raise
        await asyncio.sleep(seconds)
        return what

    async def close(self) -> None:
        self.detach()

    def detach(self) -> None:
        Fake.alive.discard(self)


class FakeSse(Fake):
    kind = ChannelKind.SSE


class FakePoll(Fake):
    kind = ChannelKind.POLL


@pytest.fixture(autouse=True)
def _channels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for channel in (Fake, FakeSse, FakePoll):
        monkeypatch.setitem(running._TYPES, channel.kind, channel)
    Fake.scenes, Fake.opened, Fake.alive = [], [], set()
    yield
    assert not Fake.alive


def session_of(*scenes: Scene, **options: Any) -> tuple[Session, States]:
    Fake.scenes = list(scenes)
    session = connect("http://gateway.invalid", session="s", client="me", **options)
    return session, States(session)


def hello(seq: int = 0, **fields: Any) -> tuple[float, Frame]:
    return 0.0, frame(welcome(seq, **fields))


def data(seq: int, after: float = 0.0) -> tuple[float, Frame]:
    return after, frame(message(seq, {"kind": "data"}))


LOST = broken("the connection broke")
BLOCKED = Scene(refusal=broken("a page", is_transport=True))
STAYS = Scene(hello())


async def test_a_server_that_accepts_and_closes_at_once_is_not_hammered() -> None:
    """Attempts of two minutes: at most twenty, and the waits grow to the cap (B04)."""
    session, states = session_of(Scene(hello(), (0.05, closed(1011, ""))), timing=Timing())
    async with session:
        await asyncio.sleep(120)

    assert 4 <= len(Fake.opened) <= 20
    assert [query.get("retry") for _kind, _at, query in Fake.opened[:3]] == [None, "1", "2"]
    assert max(states.waits) > 8


async def test_messages_alone_do_not_make_a_short_connection_stable() -> None:
    """It must have lived for `stable_after`, too."""
    session, _states = session_of(Scene(hello(), (0.0, LOST)), Scene(hello(), data(1), (9.8, LOST)), STAYS)
    async with session:
        await asyncio.sleep(60)

    assert [query.get("retry") for _kind, _at, query in Fake.opened] == [None, "1", "2"]


async def test_a_stable_connection_begins_the_waits_anew() -> None:
    """After a day online the next attempt is the first again."""
    session, _states = session_of(
        Scene(hello(), (0.0, LOST)), Scene(hello(), data(1), (10.1, LOST)), Scene(hello(1), (0.0, LOST)), STAYS
    )
    async with session:
        await asyncio.sleep(90)

    assert [query.get("retry") for _kind, _at, query in Fake.opened] == [None, "1", "1", "2"]


async def test_three_failures_lead_down_and_a_climb_leads_up_again() -> None:
    """Each minute the better channels are tried, beside the one that works."""
    session, states = session_of(BLOCKED, BLOCKED, BLOCKED, BLOCKED, BLOCKED, BLOCKED, STAYS, BLOCKED, BLOCKED, STAYS)
    async with session:
        await asyncio.sleep(200)
        channel, state = session.channel, session.state

    kinds = [kind.value for kind, _at, _query in Fake.opened]
    assert kinds == ["websocket"] * 3 + ["sse"] * 3 + ["poll", "websocket", "sse", "websocket"]
    assert (channel, state) == ("websocket", "live")
    first, second = Fake.opened[7][1] - Fake.opened[6][1], Fake.opened[9][1] - Fake.opened[8][1]
    assert 45 <= first <= 75.1
    assert 45 <= second <= 75.1
    assert [told.channel for told in states.told if told.state == "live"] == ["poll", "websocket"]


async def test_a_gateway_that_is_away_costs_no_rung() -> None:
    """Nobody answered anything: that says nothing of WebSockets."""
    session, _states = session_of(*[Scene(refusal=broken("no answer"))] * 8, STAYS)
    async with session:
        await asyncio.sleep(300)
        channel = session.channel

    assert channel == "websocket"
    assert {kind for kind, _at, _query in Fake.opened} == {ChannelKind.WEBSOCKET}


@pytest.mark.parametrize(
    ("ending", "is_cut_short"), [(Ending(After.BUSY, "busy", after_seconds=100.0), False), (LOST, True)]
)
async def test_a_probe_cuts_a_wait_short_unless_the_gateway_asked_for_it(ending: Ending, is_cut_short: bool) -> None:
    """A page that becomes visible must not hammer a gateway that is busy."""
    session, states = session_of(Scene(refusal=ending), STAYS, timing=Timing(backoff_base=1e6, backoff_max=1e6))
    async with session:
        await states.until("busy" if ending.after is After.BUSY else "waiting")
        session.probe()
        await asyncio.sleep(10)
        attempts = len(Fake.opened)

    assert attempts == (2 if is_cut_short else 1)


async def test_the_hold_of_a_closed_session_ends_at_once() -> None:
    """A long wait does not keep `close` waiting."""
    session, states = session_of(Scene(refusal=broken("no answer")), timing=Timing(backoff_base=1e6, backoff_max=1e6))
    async with session:
        await states.until("waiting")
        began = asyncio.get_running_loop().time()
        await session.close()

    assert asyncio.get_running_loop().time() - began < 1
    assert session.state is State.CLOSED


async def test_a_slot_is_kept_while_the_old_channel_lives() -> None:
    """Not before it, and at most a quarter later."""
    later = frame(control("reconnect_later", after_ms=40_000, reason="drain"))
    old = Scene(hello(), data(1), (0.0, later), data(2, 39), (120.0, LOST))
    session, states = session_of(old, Scene(hello(2, connection="c2"), data(3, 1)))
    async with session, asyncio.timeout(200):
        seqs = [(await anext(session)).seq for _ in range(3)]

    assert seqs == [1, 2, 3]
    assert 40 <= Fake.opened[1][1] - Fake.opened[0][1] <= 50
    assert Fake.opened[1][2]["replaces"] == "c1"
    assert states.names().count("live") == 1


async def test_a_move_that_fails_is_tried_again_while_the_old_channel_goes_on() -> None:
    """Its gateway is still there."""
    later = frame(control("reconnect_later", after_ms=1_000, reason="drain"))
    old = Scene(hello(), (0.0, later), data(1, 5), (60.0, LOST))
    session, states = session_of(old, BLOCKED, BLOCKED, Scene(hello(0, connection="c2"), data(1, 1), data(2, 30)))
    async with session, asyncio.timeout(200):
        seqs = [(await anext(session)).seq for _ in range(2)]

    assert seqs == [1, 2]
    assert states.names().count("live") == 1
    assert "waiting" not in states.names()


async def test_superseded_right_after_a_move_of_our_own_is_our_own_doing() -> None:
    """Two of our channels crossed; later it is somebody else."""
    later = frame(control("reconnect_later", after_ms=1_000, reason="drain"))
    session, _states = session_of(
        Scene(hello(), (0.0, later), (60.0, LOST)),
        Scene(hello(connection="c2"), (1.0, closed(4409, "superseded"))),
        Scene(hello(connection="c3"), (30.0, closed(4409, "superseded"))),
    )
    async with session:
        await asyncio.sleep(120)

    assert len(Fake.opened) == 3
    assert session.error is not None
    assert session.error.code == "superseded"


async def test_a_replaced_channel_that_is_never_closed_is_let_go() -> None:
    """Its gateway forgot it."""
    later = frame(control("reconnect_later", after_ms=1_000, reason="drain"))
    session, _states = session_of(Scene(hello(), (0.0, later)), Scene(hello(connection="c2")))
    async with session:
        await asyncio.sleep(2)
        assert len(Fake.alive) == 2
        await asyncio.sleep(10)
        assert len(Fake.alive) == 1


async def test_a_thousand_sessions_that_lose_their_gateway_come_back_apart() -> None:
    """No tenth of the first second has more than 15 % of them (B06, K09)."""
    Fake.scenes = [Scene(hello(), (5.0, LOST))] * 1000 + [STAYS]
    sessions = [connect("http://gateway.invalid", session=str(n)) for n in range(1000)]
    for each in sessions:
        each.open()
    await asyncio.sleep(7)
    returned = [at for _kind, at, query in Fake.opened if query.get("retry") == "1"]
    await asyncio.gather(*(each.close() for each in sessions))
    tenths = [sum(1 for at in returned if int((at - min(returned)) * 10) == tenth) for tenth in range(11)]

    assert len(returned) == 1000
    assert max(tenths) <= 150
