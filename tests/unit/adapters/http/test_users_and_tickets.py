"""Pushes to users, revocations and tickets over HTTP."""

from typing import Any

import pytest

from gateway.domain.wire.ids import SessionId, SessionRef, Tenant, UserId
from tests.unit.adapters.http.serving import AUTH, Served, serving
from tests.unit.adapters.http.test_producer_api import delta, error_of, token

DEFAULT = Tenant("default")


def with_session(served: Served, session: str) -> None:
    served.store.log.session(SessionRef(DEFAULT, SessionId(session)))
    served.directory.users.setdefault((DEFAULT, UserId("ann")), []).append(SessionId(session))


async def test_a_push_to_a_user_answers_for_each_session() -> None:
    async with serving() as served:
        with_session(served, "chat-1")
        with_session(served, "chat-2")

        status, body, _ = await served.post("/v1/users/ann/push", {"messages": [delta("a"), delta("b")]})

    assert (status, body) == (
        200,
        {
            "sessions": [
                {"session": "chat-1", "status": "ok", "seq": 2, "live": True},
                {"session": "chat-2", "status": "ok", "seq": 2, "live": True},
            ]
        },
    )


async def test_a_user_without_a_session_gets_nothing_and_the_caller_is_told() -> None:
    async with serving() as served:
        status, body, _ = await served.post("/v1/users/nobody/push", delta("a"))

    assert (status, body) == (202, {"sessions": [], "delivery": "none"})


async def test_a_push_to_a_user_takes_no_producer_and_no_bad_message() -> None:
    async with serving() as served:
        with_session(served, "chat-1")
        numbered = await served.post("/v1/users/ann/push", {"producer": "p", "epoch": 1, "number": 1, **delta("a")})
        bad = await served.post("/v1/users/ann/push", {"payload": {}})

    assert error_of(numbered)[:2] == (400, "bad_request")
    assert error_of(bad) == (400, "bad_request", {"index": 0})


async def test_redis_away_in_the_index_is_503() -> None:
    async with serving() as served:
        served.directory.is_down = True

        answer = await served.post("/v1/users/ann/push", delta("a"))

    assert error_of(answer)[:2] == (503, "unavailable")
    assert "Retry-After" in answer[2]


async def test_a_push_that_reached_no_session_is_an_error_and_one_that_reached_some_says_which() -> None:
    async with serving() as served:
        with_session(served, "chat-1")
        with_session(served, "chat-2")
        served.store.log.session(SessionRef(DEFAULT, SessionId("chat-1"))).ended_runs.add("r1")
        some = await served.post("/v1/users/ann/push", delta("a"))
        served.store.log.session(SessionRef(DEFAULT, SessionId("chat-2"))).ended_runs.add("r1")
        none = await served.post("/v1/users/ann/push", delta("b"))

    assert some[1]["sessions"] == [
        {"session": "chat-1", "status": "failed", "code": "fenced", "seq": None, "live": False},
        {"session": "chat-2", "status": "ok", "seq": 1, "live": True},
    ]
    assert error_of(none)[:2] == (409, "fenced")


async def test_a_revoked_user_is_out_at_once() -> None:
    async with serving(AUTH) as served:
        publisher, admin = token("publish", ["*"]), token("admin", sub="root")
        before = await served.post("/v1/sessions/chat-1/push", delta("a"), token=publisher)
        revoked = await served.post("/v1/revocations", {"user": "ann"}, token=admin)
        after = await served.post("/v1/sessions/chat-1/push", delta("a"), token=publisher)

    assert (before[0], revoked[:2]) == (200, (200, {"revoked": True}))
    assert error_of(after)[:2] == (401, "unauthenticated")
    assert served.directory.revoked[DEFAULT].users == {"ann": 1_800_000_000}


@pytest.mark.parametrize("body", [{}, {"user": "a", "token": "b"}, {"user": ""}, {"user": 5}, {"token": "x" * 257}])
async def test_a_revocation_names_exactly_one_thing(body: Any) -> None:
    async with serving() as served:
        answer = await served.post("/v1/revocations", body)

    assert error_of(answer)[:2] == (400, "bad_request")


async def test_only_scope_admin_revokes() -> None:
    async with serving(AUTH) as served:
        answer = await served.post("/v1/revocations", {"user": "bob"}, token=token("publish subscribe", ["*"]))

    assert error_of(answer) == (403, "forbidden", {"scope": "admin"})


async def test_a_ticket_stands_for_its_token_once() -> None:
    async with serving(AUTH) as served:
        subscriber = token("subscribe", ["chat-*"])
        status, body, _ = await served.post("/v1/tickets", {"session": "chat-1"}, token=subscriber)
        outside = await served.post("/v1/tickets", {"session": "other"}, token=subscriber)
        unscoped = await served.post("/v1/tickets", token=token("publish", ["*"]))
        anyone = await served.post("/v1/tickets", {})
        principal = await served.access.redeem(body["ticket"])

    assert (status, body["expires_in_seconds"], principal.only_session) == (200, 30, "chat-1")
    assert [error_of(answer)[0] for answer in (outside, unscoped, anyone)] == [404, 403, 401]
