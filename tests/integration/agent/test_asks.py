"""Asks over real gateways and a real Valkey: one winner through any of them, expiry without anybody, cancels."""

import asyncio
import json
import time

import pytest

from loadtest.stage import Stage
from tests.integration.agent.api import answer_ask, call, consume, find_ask, get, listen, open_ask, send_input, take


async def test_an_ask_is_shown_answered_and_the_agent_has_it_by_waiting_and_by_the_inbox(stage: Stage) -> None:
    one, two = await stage.start_gateways(2, stage.server().url)
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    made = await get(
        one,
        "POST",
        "/v1/sessions/s/asks",
        {"ask": "a1", "message": "Delete?", "options": ["yes", "no"], "expires_in": 60},
        headers={"traceparent": trace},
    )
    reading = asyncio.create_task(listen(two, "s", "phone", "ask_resolved"))
    waiting = asyncio.create_task(find_ask(two, "s", "a1", wait=20))
    await asyncio.sleep(0.3)

    began = time.monotonic()
    answer = await answer_ask(one, "s", "a1", "yes")
    outcome = await waiting

    assert ("open", 200, "answered") == (made["status"], answer.status, outcome["status"])
    assert time.monotonic() - began < 2
    assert ("yes", "phone") == (outcome["resolution"]["value"], outcome["resolution"]["client"])
    payloads = [frame["payload"] for frame in await reading]
    opened, resolved = (next(p for p in payloads if p["kind"] == kind) for kind in ("ask", "ask_resolved"))
    assert ("a1", "Delete?", ["yes", "no"]) == (opened["ask"], opened["message"], opened["options"])
    assert opened["expiresAt"].endswith("Z")
    assert outcome["resolution"] == resolved
    (item,) = await consume(two, 1, 10)
    assert ("ask:s:a1", "answer", {"status": "answered", "value": "yes"}, trace) == (
        item["id"],
        item["kind"],
        item["payload"],
        item["traceparent"],
    )


async def test_of_two_answers_through_two_gateways_at_once_one_wins(stage: Stage) -> None:
    gateways = await stage.start_gateways(2, stage.server().url)
    for number in range(20):
        ask = f"a{number}"
        await open_ask(gateways[0], "s", ask)
        answers = await asyncio.gather(
            *(answer_ask(gateway, "s", ask, place, f"client{place}") for place, gateway in enumerate(gateways))
        )
        outcome = await find_ask(gateways[number % 2], "s", ask)

        assert [200, 200] == [answer.status for answer in answers], [answer.body for answer in answers]
        winners = [place for place, answer in enumerate(answers) if answer.json().get("winner")]
        assert [outcome["resolution"]["value"]] == winners, [answer.body for answer in answers]

    items = await consume(gateways[0], 20, 10)
    assert 20 == len({item["id"] for item in items})


async def test_an_invalid_answer_and_one_of_somebody_else_consume_nothing(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url)
    await open_ask(gateway, "s", "a1", responseSchema={"type": "integer"}, who={"clients": ["phone"]})

    wrong = await answer_ask(gateway, "s", "a1", "many")
    other = await answer_ask(gateway, "s", "a1", 1, "tablet")
    still = await find_ask(gateway, "s", "a1")
    right = await answer_ask(gateway, "s", "a1", 1)

    assert (400, "invalid_answer") == (wrong.status, wrong.error_details["reason"])
    assert (403, "not_allowed_to_answer") == (other.status, other.error_details["reason"])
    assert ("open", 200) == (still["status"], right.status)
    assert 1 == len(await consume(gateway, 1, 10))


@pytest.mark.fault
async def test_an_ask_expires_although_every_gateway_was_restarted_in_between(stage: Stage) -> None:
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url)
    await open_ask(gateways[0], "s", "a1", expires_in=2)
    for gateway in gateways:
        await gateway.kill()
    await asyncio.sleep(2)
    (fresh,) = await stage.start_gateways(1, server.url)

    frames = await listen(fresh, "s", "phone", "ask_resolved")
    outcome = await find_ask(fresh, "s", "a1")
    (item,) = await consume(fresh, 1, 10)

    assert "expired" == outcome["status"] == frames[-1]["payload"]["status"]
    assert ("ask:s:a1", "expired") == (item["id"], item["kind"])
    late = await answer_ask(fresh, "s", "a1", "yes")
    assert (200, False, "expired") == (late.status, late.json()["winner"], late.json()["status"])


async def test_a_cancelled_run_cancels_its_asks(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url)
    await get(gateway, "POST", "/v1/sessions/s/push", {"payload": {"kind": "run_start", "run": "r7"}})
    await open_ask(gateway, "s", "mine", run="r7")
    await open_ask(gateway, "s", "other")
    waiting = asyncio.create_task(find_ask(gateway, "s", "mine", wait=20))
    await asyncio.sleep(0.2)

    stopped = await call(gateway, "POST", "/v1/sessions/s/control", {"client": "phone", "kind": "cancel", "run": "r7"})

    assert 200 == stopped.status, stopped.body
    assert "cancelled" == (await waiting)["status"]
    assert "open" == (await find_ask(gateway, "s", "other"))["status"]
    refused = await call(gateway, "POST", "/v1/sessions/s/asks", {"ask": "late", "message": "?", "run": "r7"})
    assert (409, "run_ended") == (refused.status, refused.error_details["reason"])


async def test_a_gateway_that_drains_answers_those_who_wait_and_is_forgotten(stage: Stage) -> None:
    server = stage.server()
    one, two = await stage.start_gateways(2, server.url)
    await open_ask(one, "s", "a1")
    waits = [asyncio.create_task(find_ask(gateway, "s", "a1", wait=30)) for gateway in (one, two)]
    await asyncio.sleep(0.5)
    one.terminate()

    assert "open" == (await waits[0])["status"]
    assert 0 == await one.wait(12)
    assert [two.ident.encode()] == server.ask("HGET", "rr:{default:s}:kept", "w:a1").split(b"\n")
    await answer_ask(two, "s", "a1", "yes")
    assert "answered" == (await waits[1])["status"]
    await consume(two, 1, 10)


async def test_an_agent_takes_its_ask_back(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url)
    await open_ask(gateway, "s", "a 1/ä")

    path = "/v1/sessions/s/asks/a%201%2F%C3%A4/cancel"
    first = await get(gateway, "POST", path, {})
    again = await get(gateway, "POST", path, {})

    assert [(True, "cancelled")] * 2 == [(it["cancelled"], it["status"]) for it in (first, again)]
    assert [] == await take(gateway)


IMPOSSIBLE = (
    {},
    {"ask": "a", "message": ""},
    {"ask": "a", "message": "?", "options": []},
    {"ask": "a", "message": "?", "responseSchema": {"pattern": "x"}},
    {"ask": "a", "message": "?", "prompt": "?"},
    {"ask": "a", "message": "?", "expires_in": 0},
    {"ask": "a", "message": "?", "unknown": 1},
)


async def test_what_cannot_be_meant_is_refused_and_the_same_ask_again_is_not_another(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url)
    for body in IMPOSSIBLE:
        refused = await call(gateway, "POST", "/v1/sessions/s/asks", body)
        assert (400, "bad_request") == (refused.status, refused.error_code), body
    for number in range(32):
        await open_ask(gateway, "s", f"a{number}")

    again = await call(gateway, "POST", "/v1/sessions/s/asks", {"ask": "a0", "message": "Well?"})
    other = await call(gateway, "POST", "/v1/sessions/s/asks", {"ask": "a0", "message": "Other?"})
    more = await call(gateway, "POST", "/v1/sessions/s/asks", {"ask": "a32", "message": "Well?"})

    assert (200, 409, 429) == (again.status, other.status, more.status), (again.body, other.body, more.body)
    assert json.loads(again.body)["status"] == "open"


async def test_input_of_a_client_comes_to_the_agent_in_order(stage: Stage) -> None:
    one, two = await stage.start_gateways(2, stage.server().url)
    for seq in range(1, 9):
        answer = await send_input((one, two)[seq % 2], "s", seq, f"text {seq}")
        assert 200 == answer.status, answer.body

    items = await consume(one, 8, 10)

    assert [f"s:phone:{seq}" for seq in range(1, 9)] == list(dict.fromkeys(item["id"] for item in items))
    assert {"input"} == {item["kind"] for item in items}
