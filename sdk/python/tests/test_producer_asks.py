"""Asking people: the outcome is waited for over dead gateways, and the same ask is never asked twice."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from relayrouter import ConflictError, NotFoundError, Publisher, RelayError

from sdk.python.tests.run_server import QUICK, error, serving


class Asks:
    """Answers from `replies`, the last one for ever."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, str, Any]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.asked.append((request.method, request.path_qs, json.loads(body or b"null")))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if reply is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return reply() if callable(reply) else web.json_response(reply)


OPEN = {"ask": "a1", "status": "open", "seq": 1}
YES = {"ask": "a1", "status": "answered", "seq": 1, "resolution": {"value": "yes", "user": "u1", "client": "phone"}}


async def ask(asks: Asks, **options: Any) -> Any:
    async with (
        serving(web.route("*", "/{path:.*}", asks.handle)) as url,
        asyncio.timeout(10),
        Publisher(url, session="s", timing=QUICK) as publisher,
    ):
        return await publisher.ask("Go on?", ask="a1", **options)


async def test_the_outcome_is_waited_for() -> None:
    """One question, then long polls until somebody answered."""
    asks = Asks(OPEN, OPEN, YES)
    answer = await ask(asks, options=["yes", "no"], expires_in=60, run="r", users=["u1"], toolCallId="t1")

    assert (answer.ask, answer.status, answer.is_answered, answer.value) == ("a1", "answered", True, "yes")
    assert (answer.user, answer.client) == ("u1", "phone")
    assert [(method, path) for method, path, _ in asks.asked] == [
        ("POST", "/v1/sessions/s/asks"), *[("GET", "/v1/sessions/s/asks/a1?wait=25")] * 2
    ]  # fmt: skip
    assert asks.asked[0][2] == {
        "ask": "a1", "message": "Go on?", "options": ["yes", "no"], "expires_in": 60, "run": "r",
        "who": {"users": ["u1"]}, "toolCallId": "t1",
    }  # fmt: skip


async def test_lost_answers_are_asked_for_again() -> None:
    """The ask has one id, so its repeat is no second one."""
    asks = Asks(None, OPEN, None, lambda: error(503, "unavailable"), YES)
    answer = await ask(asks)

    assert answer.value == "yes"
    assert asks.asked[0] == asks.asked[1]


@pytest.mark.parametrize("status", ["expired", "cancelled"])
async def test_an_ask_that_nobody_answers_has_an_outcome_too(status: str) -> None:
    answer = await ask(Asks(OPEN, {"ask": "a1", "status": status, "resolution": {}}))

    assert (answer.status, answer.is_answered, answer.value) == (status, False, None)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [(lambda: error(404, "not_found"), NotFoundError), (lambda: error(409, "conflict"), ConflictError)],
)
async def test_a_refusal_is_raised(reply: Any, kind: type[RelayError]) -> None:
    with pytest.raises(kind):
        await ask(Asks(reply))


async def test_a_run_is_cancelled_and_an_ask_taken_back() -> None:
    asks = Asks({"cancelled": True}, {"cancelled": False, "status": "answered", "resolution": {"value": "no"}})
    async with (
        serving(web.route("*", "/{path:.*}", asks.handle)) as url,
        Publisher(url, session="s/1", timing=QUICK) as publisher,
    ):
        was_open = await publisher.cancel("r 1", "changed my mind")
        outcome = await publisher.cancel_ask("a1")

    assert was_open
    assert outcome.value == "no"
    assert asks.asked == [
        ("POST", "/v1/sessions/s%2F1/runs/r%201/cancel", {"reason": "changed my mind"}),
        ("POST", "/v1/sessions/s%2F1/asks/a1/cancel", {}),
    ]
