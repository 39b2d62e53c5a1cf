"""The push API: answers, refusals and limits, over HTTP against a log in memory."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import jwt
import pytest

from gateway.domain.wire.ids import (
    ClientId,
    ConnectionId,
    GatewayId,
    ProducerName,
    SessionId,
    SessionRef,
    Tenant,
    UserId,
)
from gateway.ports import RouteInfo
from gateway.settings import LimitSettings
from tests.unit.adapters.http.serving import AUTH, SECRET, Served, serving

PUSH = "/v1/sessions/chat-1/push"
REF = SessionRef(Tenant("default"), SessionId("chat-1"))


def delta(text: str, run: str = "r1") -> dict[str, Any]:
    return {"payload": {"kind": "delta", "run": run, "text": text}}


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as served:
        yield served


def bodies(served: Served, ref: SessionRef = REF) -> list[Any]:
    return [json.loads(item.body + b"}") for item in served.store.log.session(ref).items]


def error_of(answer: tuple[int, Any, Any]) -> tuple[int, str, dict[str, Any]]:
    status, body, _ = answer
    assert set(body["error"]) == {"code", "message", "retryable", "details"}
    return status, body["error"]["code"], body["error"]["details"]


async def test_one_message_or_a_batch_is_appended(served: Served) -> None:
    one = await served.post(PUSH, delta("a"))
    many = await served.post(PUSH, {"messages": [delta("b"), delta("c")]})

    assert one[:2] == (
        200,
        {"results": [{"status": "ok", "seq": 1}], "head": 1, "cursor": "epoch.fork0.1", "live": True},
    )
    assert many[1]["results"] == [{"status": "ok", "seq": 2}, {"status": "ok", "seq": 3}]
    assert [body["text"] for body in bodies(served)] == ["a", "b", "c"]


@pytest.mark.parametrize("session", ["a/b", "ü {x}:*", "a%2Fb", "日本", "a b", "x?y#z", "@:[]"])
async def test_any_printable_session_id_is_itself(served: Served, session: str) -> None:
    status, _, _ = await served.post(f"/v1/sessions/{quote(session, safe='')}/push", delta("a"))

    assert status == 200
    assert [ref.session for ref in served.store.log.sessions] == [session]


@pytest.mark.parametrize("session", ["x" * 129, "a%00b", "a%0Ab"])
async def test_a_bad_session_id_is_named(served: Served, session: str) -> None:
    status, code, _ = error_of(await served.post(f"/v1/sessions/{session}/push", delta("a")))

    assert (status, code) == (400, "bad_request")
    assert served.store.log.sessions == {}


async def test_a_producer_is_registered_repeats_and_overlaps(served: Served) -> None:
    status, registered, _ = await served.post("/v1/sessions/chat-1/producers/p", {"owner": "ann"})
    first = {"producer": "p", "epoch": registered["epoch"], "number": 1, "messages": [delta("a"), delta("b")]}

    once = await served.post(PUSH, first)
    again = await served.post(PUSH, first)
    overlap = await served.post(PUSH, first | {"number": 2, "messages": [delta("b"), delta("c")]})

    assert (status, registered) == (200, {"producer": "p", "epoch": 1, "next": 1})
    assert [result["status"] for result in once[1]["results"]] == ["ok", "ok"]
    assert again[1]["results"] == [{"status": "duplicate", "seq": 1}, {"status": "duplicate", "seq": 2}]
    assert overlap[1]["results"] == [{"status": "duplicate", "seq": 2}, {"status": "ok", "seq": 3}]
    assert served.store.log.session(REF).owner == "ann"


async def test_a_number_ahead_an_unknown_and_an_old_producer_are_told(served: Served) -> None:
    push = {"producer": "p", "epoch": 1, "number": 3, **delta("x")}
    unknown = error_of(await served.post(PUSH, push))
    await served.post("/v1/sessions/chat-1/producers/p")

    ahead = error_of(await served.post(PUSH, push))
    await served.post("/v1/sessions/chat-1/producers/p", {})
    fenced = error_of(await served.post(PUSH, push))

    assert unknown == (409, "producer_unknown", {})
    assert ahead == (409, "expected", {"expected": 1})
    assert fenced == (409, "fenced", {"reason": "epoch"})
    assert bodies(served) == []


@pytest.mark.parametrize(
    ("bad", "status", "code"),
    [
        ({"payload": {"kind": "delta", "run": "r"}}, 400, "bad_request"),
        ({"payload": {}}, 400, "bad_request"),
        ({"payload": []}, 400, "bad_request"),
        ({}, 400, "bad_request"),
        ({"type": "control", "payload": {"kind": "x"}}, 400, "bad_request"),
        ({"type": "audio", "payload": {"kind": "x"}}, 422, "unsupported"),
        ({"payload": {"kind": "x", "text": "y" * 70_000}}, 413, "too_large"),
        ({"payload": {"kind": "x", "n": 2**60}}, 400, "bad_request"),
    ],
)
async def test_one_bad_message_refuses_the_batch_and_consumes_its_numbers(
    served: Served, bad: Any, status: int, code: str
) -> None:
    await served.post("/v1/sessions/chat-1/producers/p")
    batch = {"producer": "p", "epoch": 1, "number": 1, "messages": [delta("a"), delta("b"), bad]}

    refused = error_of(await served.post(PUSH, batch))
    repeated = await served.post(PUSH, batch | {"messages": [delta("a"), delta("b"), delta("c"), delta("d")]})

    assert refused[:2] == (status, code)
    assert refused[2]["index"] == 2
    assert repeated[1]["results"] == [{"status": "refused", "code": code}] * 3 + [{"status": "ok", "seq": 1}]
    assert [body["text"] for body in bodies(served)] == ["d"]


async def test_a_bad_message_without_a_producer_leaves_no_trace(served: Served) -> None:
    status, code, details = error_of(await served.post(PUSH, {"messages": [delta("a"), {"payload": {"kind": ""}}]}))

    assert (status, code, details) == (400, "bad_request", {"index": 1})
    assert served.store.calls == 0


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b"", "not JSON"),
        (b"not json", "not JSON"),
        (b"[]", "object"),
        (b"{}", "either"),
        (b'{"payload":{"kind":"x"},"messages":[]}', "either"),
        (b'{"messages":[]}', "1 to 128"),
        (b'{"messages":[{"payload":{"kind":"x"}},7]}', "messages[1]"),
        (b'{"payload":{"kind":"x"},"producer":"p"}', "epoch, number"),
        (b'{"payload":{"kind":"x"},"number":1,"epoch":1}', "producer"),
        (b'{"payload":{"kind":"x"},"producer":"~p","epoch":1,"number":1}', "begin with"),
        (b'{"payload":{"kind":"x"},"producer":"/push","epoch":1,"number":1}', "begin with"),
        (b'{"payload":{"kind":"x"},"producer":"p","epoch":1,"number":0}', "number"),
        (b'{"payload":{"kind":"x"},"producer":"p","epoch":1,"number":9007199254740992}', "number"),
        (b'{"payload":{"kind":"x"},"producer":"p","epoch":-1,"number":1}', "epoch"),
        (b'{"payload":{"kind":"x"},"producer":"p","epoch":1,"number":1.5}', "number"),
        (b'{"payload":{"kind":"x"},"owner":""}', "owner"),
        (b'{"payload":{"kind":"x"},"order":"reorder"}', "needs producer"),
        (b'{"payload":{"kind":"x"},"producer":"p","epoch":1,"number":1,"order":"x"}', "contiguous"),
        (b'{"payload":{"kind":"x"},"expires_in":"60"}', "expires_in"),
        (b'{"payload":{"kind":"x"},"expires_in":-1}', "expires_in"),
        (b'{"payload":{"kind":"x"},"expires_in":604801}', "604800"),
        (b'{"messages":[{"payload":{"kind":"x"},"expires_in":1},{"payload":{"kind":"x"}}]}', "one expires_in"),
        (b'{"messages":[{"payload":{"kind":"x"},"expires_in":1}],"expires_in":2}', "one expires_in"),
        (b'{"payload":{"kind":"x","n":NaN}}', "not JSON"),
    ],
)
async def test_a_request_that_cannot_be_read_says_why(served: Served, body: bytes, names: str) -> None:
    answer = await served.ask("POST", PUSH, data=body)

    assert error_of(answer)[:2] == (400, "bad_request")
    assert names in answer[1]["error"]["message"]
    assert served.store.calls == 0


@pytest.mark.parametrize(("count", "status"), [(127, 200), (128, 200), (129, 413)])
async def test_a_batch_has_at_most_128_messages(served: Served, count: int, status: int) -> None:
    answer = await served.post(PUSH, {"messages": [delta("x")] * count})

    assert answer[0] == status
    assert len(bodies(served)) == (count if status == 200 else 0)


@pytest.mark.parametrize(("excess", "status"), [(-1, 200), (0, 200), (1, 413)])
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_body_has_at_most_256_kib(excess: int, status: int, is_chunked: bool) -> None:
    async with serving(limits=LimitSettings(batch_bytes=4_096, message_bytes=4_096)) as served:
        body = json.dumps(delta("")).encode()
        body = body.replace(b'""', b'"' + b"x" * (4_096 - len(body) + excess) + b'"')
        assert len(body) == 4_096 + excess

        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(body), 1_000):
                yield body[start : start + 1_000]

        answer = await served.ask("POST", PUSH, data=chunks() if is_chunked else body)

    assert answer[0] == status
    if status == 413:
        assert error_of(answer)[1] == "too_large"


async def test_surrogates_and_texts_of_the_world_arrive_whole(served: Served) -> None:
    body = (
        b'{"messages":[{"payload":{"kind":"delta","run":"r","text":"\\ud83d"}},'
        b'{"payload":{"kind":"delta","run":"r","text":"\\ude00 ok \\ud83d\\ude00"}}]}'
    )

    status, _, _ = await served.ask("POST", PUSH, data=body)
    await served.post(PUSH, delta("日本 é e\u0301 👩‍👩‍👧 עברית \u0000\u2028"))

    assert status == 200
    assert [body["text"] for body in bodies(served)] == [
        "\ufffd",
        "\ufffd ok 😀",
        "日本 é e\u0301 👩‍👩‍👧 עברית \u0000\u2028",
    ]


async def test_an_idempotency_key_makes_a_repeat_a_duplicate(served: Served) -> None:
    first = await served.post(PUSH, delta("a"), headers={"Idempotency-Key": "k1"})
    again = await served.post(PUSH, delta("a"), headers={"Idempotency-Key": "k1"})
    bad = await served.post(PUSH, delta("a"), headers={"Idempotency-Key": "k" * 129})

    assert (first[1]["results"][0]["status"], again[1]["results"][0]) == ("ok", {"status": "duplicate", "seq": 1})
    assert error_of(bad)[0] == 400


async def test_text_of_a_run_that_has_a_writer(served: Served) -> None:
    """Refused with its place in the batch; a repeat of its number says the same."""
    await served.post("/v1/sessions/chat-1/producers/p", {})
    served.store.log.session(REF).written_runs.add("r1")
    batch = {"messages": [delta("b", "r2"), delta("c")], "producer": "p", "epoch": 1, "number": 1}

    refused = error_of(await served.post(PUSH, batch))
    again = await served.post(PUSH, batch)

    assert refused == (409, "conflict", {"index": 1, "reason": "has_writer"})
    assert again[1]["results"] == [{"status": "refused", "code": "has_writer"}] * 2


async def test_a_run_that_ended_and_a_deleted_session(served: Served) -> None:
    await served.post(PUSH, delta("a"))
    served.store.log.session(REF).ended_runs.add("r1")
    ended = error_of(await served.post(PUSH, {"messages": [delta("b", "r2"), delta("c")]}))

    deleted = await served.ask("DELETE", "/v1/sessions/chat-1")
    gone = error_of(await served.post(PUSH, delta("b", "r2")))
    again = error_of(await served.ask("DELETE", "/v1/sessions/chat-1"))

    assert ended == (409, "fenced", {"index": 1, "reason": "run_ended"})
    assert deleted[:2] == (200, {"deleted": True})
    assert gone[:2] == (410, "gone")
    assert again[:2] == (404, "not_found")


async def test_redis_away_is_503_with_a_jittered_retry_after(served: Served) -> None:
    served.store.plan = lambda: "refused"
    answers = [await served.post(PUSH, delta("x")) for _ in range(3)]

    assert [error_of(answer)[:2] for answer in answers] == [(503, "unavailable")] * 3
    assert all(answer[1]["error"]["retryable"] for answer in answers)
    assert all(1 <= int(answer[2]["Retry-After"]) <= 2 for answer in answers)
    assert len({answer[1]["error"]["details"]["after_ms"] for answer in answers}) > 1


async def test_a_look_at_a_session(served: Served) -> None:
    await served.post(PUSH, {"owner": "ann", **delta("a")})
    route = RouteInfo(ClientId("tab"), GatewayId("gw"), ConnectionId("c1"), 7, 50_000, "epoch.fork0.0")
    served.store.log.session(REF).routes = (route,)

    status, body, _ = await served.ask("GET", "/v1/sessions/chat-1")
    absent = error_of(await served.ask("GET", "/v1/sessions/nothing"))

    assert (status, body) == (
        200,
        {
            "session": "chat-1",
            "epoch": "epoch",
            "cursor": "epoch.fork0.1",
            "head": 1,
            "first": 1,
            "retained_bytes": 10,
            "owner": "ann",
            "clients": [
                {
                    "client": "tab",
                    "gateway": "gw",
                    "connection": "c1",
                    "lease_ms": 50_000,
                    "cursor": "epoch.fork0.0",
                    "lag": 1,
                    "capabilities": [],
                    "quality": None,
                    "quality_score": None,
                }
            ],
        },
    )
    assert absent == (404, "not_found", {})


# ---- the older form ------------------------------------------------------------------------------------------------


async def test_the_older_push_numbers_by_seq_and_knows_repeats(served: Served) -> None:
    first = await served.post("/push", {"sessionId": "chat-1", "seq": 1, "type": "text", "content": "hello"})
    again = await served.post("/push", {"sessionId": "chat-1", "seq": 1, "type": "text", "content": "hello"})

    assert first[:2] == (200, {"status": "ok", "seq": 1, "live": True})
    assert again[:2] == (200, {"status": "duplicate", "seq": 1, "live": True})
    assert bodies(served) == [{"kind": "text", "text": "hello"}]
    assert list(served.store.log.session(REF).producers) == ["/push"]


async def test_the_older_push_without_seq_is_anonymous_and_content_may_be_an_object(served: Served) -> None:
    base = {"sessionId": "chat-1"}
    await served.post("/push", base | {"type": "card", "content": {"a": 1}})
    await served.post("/push", base | {"type": "delta", "content": "x", "run": "r1"})
    await served.post("/push", base | {"type": "text", "content": "y", "seq": 1, "producer": "p"})

    assert bodies(served) == [
        {"kind": "card", "data": {"a": 1}},
        {"kind": "delta", "run": "r1", "text": "x"},
        {"kind": "text", "text": "y"},
    ]
    assert ProducerName("/push/p") in served.store.log.session(REF).producers


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"type": "audio"}, 422, "unsupported"),
        ({"type": "video"}, 422, "unsupported"),
        ({"type": "control"}, 400, "bad_request"),
        ({"type": ""}, 400, "bad_request"),
        ({"type": 5}, 400, "bad_request"),
        ({"seq": 0}, 400, "bad_request"),
        ({"seq": "1"}, 400, "bad_request"),
        ({"sessionId": ""}, 400, "bad_request"),
        ({"sessionId": None}, 400, "bad_request"),
        ({"producer": "x" * 128, "seq": 1}, 400, "bad_request"),
        ({"order": "sorted"}, 400, "bad_request"),
        ({"order": None}, 400, "bad_request"),
        ({"expires_in": 0}, 400, "bad_request"),
        ({"expires_in": 604_801}, 400, "bad_request"),
        ({"expires_in": True}, 400, "bad_request"),
        ({"type": "delta", "content": {"a": 1}}, 400, "bad_request"),
    ],
)
async def test_the_older_push_refuses_what_it_cannot_do(
    served: Served, change: dict[str, Any], status: int, code: str
) -> None:
    body = {"sessionId": "chat-1", "type": "text", "content": "x"} | change

    assert error_of(await served.post("/push", body))[:2] == (status, code)
    assert bodies(served) == []


async def test_the_older_push_consumes_the_number_of_a_bad_message(served: Served) -> None:
    base = {"sessionId": "chat-1", "seq": 1}
    await served.post("/push", base | {"type": "data", "content": {"n": 2**60}})

    again = await served.post("/push", base | {"type": "text", "content": "x"})
    following = await served.post("/push", base | {"seq": 2, "type": "text", "content": "y"})

    assert again[1] == {"status": "refused", "code": "bad_request", "live": True}
    assert following[1]["status"] == "ok"


# ---- who may -------------------------------------------------------------------------------------------------------


def token(scope: str = "publish", sessions: list[str] | None = None, **claims: Any) -> str:
    fields: dict[str, Any] = {"sub": "ann", "scope": scope, "exp": 1_800_000_100, "iat": 1_800_000_000}
    if sessions is not None:
        fields["sessions"] = sessions
    return jwt.encode(fields | claims, SECRET, algorithm="HS256", headers={"kid": "k"})


CALLS = [
    ("POST", PUSH, delta("x")),
    ("POST", "/v1/sessions/chat-1/producers/p", None),
    ("GET", "/v1/sessions/chat-1", None),
    ("DELETE", "/v1/sessions/chat-1", None),
    ("POST", "/push", {"sessionId": "chat-1", "type": "text", "content": "x"}),
]


async def test_a_body_that_is_not_in_its_encoding_is_the_senders_fault(served: Served) -> None:
    """No 500, which would be tried again and logged as ours."""
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    answer = await served.ask("POST", PUSH, data=b"{}", headers=headers)

    assert error_of(answer)[:2] == (400, "bad_request")


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
async def test_every_call_needs_a_token_the_scope_and_the_session(method: str, path: str, body: Any) -> None:
    async with serving(AUTH) as served:
        served.store.log.session(REF).owner = UserId("bob")

        answers = [
            error_of(await served.ask(method, path, json=body, token=used))
            for used in (None, "junk", token("subscribe", ["*"]), token("publish", ["other-*"]), token("publish"))
        ]

    assert [answer[:2] for answer in answers] == [
        (401, "unauthenticated"),
        (401, "unauthenticated"),
        (403, "forbidden"),
        (404, "not_found"),
        (404, "not_found"),
    ]
    assert answers[3] == answers[4]


async def test_the_owner_and_whoever_has_the_pattern_may() -> None:
    async with serving(AUTH) as served:
        served.store.log.session(REF).owner = UserId("ann")

        statuses = [
            (await served.post(PUSH, delta("x"), token=used))[0]
            for used in (token("publish"), token("publish subscribe", ["chat-*"]))
        ]

    assert statuses == [200, 200]
