"""What a client says on its socket: answered or refused in a frame, never a close (protocol.md 1)."""

import json
from typing import Any

import pytest

from gateway.core.connection import Connection
from gateway.core.visit import Speech, Visit
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.ports import Claimed, Clock
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import Stage, stage


class Host:
    """core/door.py, as a visit sees it; and control and inputs, which answer what they are told to."""

    def __init__(self, it: Stage) -> None:
        self._it = it
        self.measures = Measures()
        self.refusal: RelayError | None = None
        self.said: list[tuple[Any, ...]] = []
        self.speech = Speech(Controls(self), Inputs(self))

    @property
    def clock(self) -> Clock:
        return lambda: self._it.now[0]

    def begin(self, connection: Connection, claimed: Claimed, bare_seq: int | None) -> None:
        self._it.hub.opened(connection)
        self._it.hub.resume.begin(connection, claimed, bare_seq)

    async def renew(self, connection: Connection, token: str) -> None:
        raise AssertionError("nobody renews here")

    def end(self, connection: Connection, reason: str) -> None:
        connection.end(reason)

    def may_answer(self, connection: Connection) -> bool:
        return True

    def take(self, *what: Any) -> dict[str, Any]:
        self.said.append(what)
        if self.refusal is not None:
            raise self.refusal
        return {"kind": "accepted", "what": what[0]}


class Controls:
    def __init__(self, host: Host) -> None:
        self._host = host

    async def by_socket(self, connection: Connection, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
        return self._host.take(kind, fields)


class Inputs:
    def __init__(self, host: Host) -> None:
        self._host = host

    async def by_socket(self, connection: Connection, number: Any, payload: Any) -> dict[str, Any]:
        return self._host.take("input", number, payload)


async def say(it: Stage, host: Host, message: Any) -> FakeLink:
    connection = it.make()
    visit = Visit(host, connection, await it.claim(connection), None)
    link = FakeLink()
    visit.begin(link)
    await visit.on_text(message if isinstance(message, str) else json.dumps(message))
    return link


@pytest.mark.parametrize("name", ["kind", "action"])
async def test_a_control_is_handed_on_and_its_acceptance_answered(name: str) -> None:
    async with stage() as it:
        host = Host(it)
        link = await say(it, host, {"type": "control", "payload": {name: "pause", "id": "c2"}})

        assert host.said == [("pause", {name: "pause", "id": "c2"})]
        assert link.control("accepted") == [{"kind": "accepted", "what": "pause"}]


async def test_an_input_is_handed_on_with_its_number() -> None:
    async with stage() as it:
        host = Host(it)
        link = await say(it, host, {"type": "text", "seq": 3, "payload": {"text": "hi"}})

        assert host.said == [("input", 3, {"text": "hi"})]
        assert link.kinds() == ["welcome", "accepted"]


@pytest.mark.parametrize(
    ("message", "about"),
    [
        ({"type": "text", "seq": 3, "payload": {}}, {"what": "input", "seq": 3}),
        (
            {"type": "control", "payload": {"kind": "interrupt", "run": "r", "id": "i1"}},
            {"what": "interrupt", "id": "i1"},
        ),
    ],
)
async def test_a_refusal_names_what_it_refuses(message: dict[str, Any], about: dict[str, Any]) -> None:
    async with stage() as it:
        host = Host(it)
        host.refusal = RelayError(ErrorCode.EXPECTED, "input 2 comes next", {"expected": 2, "secret": 1}, after_ms=7)
        link = await say(it, host, message)

        assert link.control("error") == [
            {"kind": "error", "code": "expected", "message": "input 2 comes next", "retryable": False, "after_ms": 7}
            | about
            | {"expected": 2}
        ]
        assert link.closed is None


@pytest.mark.parametrize(
    "payload", [{"kind": "ack", "seq": "x"}, {"kind": "dance"}, {"kind": 5}, {}, {"kind": "auth"}], ids=str
)
async def test_every_refusal_of_a_control_has_its_id(payload: dict[str, Any]) -> None:
    """Also where nobody was asked: a client with several under way knows which one it was."""
    async with stage() as it:
        link = await say(it, Host(it), {"type": "control", "payload": payload | {"id": "c7", "t": 5}})

        [error] = link.control("error")
        assert (error["code"], error["id"], error["t"]) == ("bad_request", "c7", 5)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("no json", "bad_request"),
        ([], "bad_request"),
        ({"type": "control"}, "bad_request"),
        ({"type": "text", "seq": 1, "payload": "hi"}, "bad_request"),
        ({"type": "audio", "payload": {}}, "unsupported"),
        ({"type": "control", "payload": {"kind": 5}}, "bad_request"),
        ({"type": "control", "payload": {"kind": "dance"}}, "bad_request"),
    ],
)
async def test_what_is_wrong_is_answered_and_reaches_nobody(message: Any, code: str) -> None:
    async with stage() as it:
        host = Host(it)
        link = await say(it, host, message)

        assert [error["code"] for error in link.control("error")] == [code]
        assert not host.said
