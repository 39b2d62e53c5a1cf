"""Dead peers, ends of tokens and revocations on real sockets (A01, A02, A12, U03, P05)."""

import asyncio
import time
from contextlib import AsyncExitStack

import pytest

from loadtest.faults import RedisProxy
from loadtest.plain_http import ask_once
from loadtest.processes import Gateway, Server
from loadtest.publisher import delta
from loadtest.stage import Stage
from loadtest.wire import Op, encode
from tests.integration.watched_socket import WITH_TOKENS, WatchedSocket, token, watch

pytestmark = pytest.mark.fault

HEARTBEAT_SECONDS = 0.5
QUICK = {
    "liveness__heartbeat_seconds": str(HEARTBEAT_SECONDS),
    "liveness__heartbeat_min_seconds": str(HEARTBEAT_SECONDS),
    "liveness__silence_seconds": "1",
    "liveness__answer_within_seconds": "2",
}


# ---- peers that are gone, and peers that are not -----------------------------------------------------------------


async def test_who_is_there_stays_and_who_is_not_is_closed(stage: Stage) -> None:
    server = stage.server()
    gateway = await stage.gateway(server.url, **QUICK)

    await asyncio.gather(
        _dead_peer_is_closed_and_its_route_goes(gateway, server),
        _write_to_a_half_dead_peer_finds_out(stage, gateway),
        _peer_that_answers_is_measured_and_stays(gateway),
        _slow_upload_is_a_sign_of_life(gateway),
    )

    assert await gateway.metric("closes_total", reason="heartbeat") == 2
    assert await gateway.metric("missed_pongs_total") == 3


async def _dead_peer_is_closed_and_its_route_goes(gateway: Gateway, server: Server) -> None:
    async with watch(gateway.url, "dead", answers_pings=False, answers_close=False) as dead:
        assert await dead.until_closed(4 * HEARTBEAT_SECONDS + 2.5) == (4408, "heartbeat")
        assert len(dead.pings) == len(set(dead.pings)) == 3
        await asyncio.sleep(0.5)
    deadline = time.monotonic() + 3
    while server.ask("HEXISTS", "rr:{default:dead}:routes", "c"):
        assert time.monotonic() < deadline, "the route of a dead peer is left"
        await asyncio.sleep(0.05)


async def _write_to_a_half_dead_peer_finds_out(stage: Stage, gateway: Gateway) -> None:
    publisher = stage.publisher([gateway], "half")
    async with watch(gateway.url, "half", answers_pings=False, heartbeat=20) as half_dead:
        await asyncio.sleep(1.5)
        await publisher.publish(delta("r", stage.rng))
        seconds = await half_dead.until(lambda it: it.ended_at, 10)
        assert await half_dead.until_closed(0) == (4408, "heartbeat")
    assert 1.5 <= seconds < 10  # pings alone would take a minute
    assert len(half_dead.pings) == 1


async def _peer_that_answers_is_measured_and_stays(gateway: Gateway) -> None:
    async with watch(gateway.url, "alive") as alive:
        await asyncio.sleep(3)
        before = await gateway.metric("heartbeat_rtt_seconds_count")
        for forged in (b"", b"\0" * 8, b"\xff" * 8, b"x" * 125):
            alive.ws.send(Op.PONG, forged)
        after = await gateway.metric("heartbeat_rtt_seconds_count")
        await alive.until(lambda it: len(it.pings) >= 6, 4)
        assert alive.close is None
    assert 2 <= before
    assert after - before <= 1


async def _slow_upload_is_a_sign_of_life(gateway: Gateway) -> None:
    """One message of 60 kB for 3.6 s: no frame is whole for longer than three heartbeats, no pong gets in between."""
    async with watch(gateway.url, "slow", answers_pings=False) as slow:
        frame = encode(Op.TEXT, b'{"type":"control","payload":{"kind":"ping","id":"' + b"x" * 60_000 + b'"}}')
        for start in range(0, len(frame), 2_000):
            slow.ws.send_raw(frame[start : start + 2_000])
            await asyncio.sleep(0.12)
        await slow.until(lambda it: it.control("pong"), 2)
        assert slow.close is None


# ---- tokens ------------------------------------------------------------------------------------------------------


async def test_the_end_of_a_token_closes_and_another_one_in_time_does_not(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url, **WITH_TOKENS, auth__leeway_seconds="1")

    await asyncio.gather(
        _end_of_a_token_closes_within_a_second(stage, gateway, "idle", is_streaming=False),
        _end_of_a_token_closes_within_a_second(stage, gateway, "busy", is_streaming=True),
        _renewed_token_keeps_and_another_users_closes(gateway),
    )


async def _end_of_a_token_closes_within_a_second(
    stage: Stage, gateway: Gateway, session: str, *, is_streaming: bool
) -> None:
    publisher = stage.publisher([gateway], session, token=token("agent"))
    ends_at = int(time.time()) + 3  # tokens are dated in seconds
    async with AsyncExitStack() as stack:
        socket = await stack.enter_async_context(watch(gateway.url, session, bearer=token(exp=ends_at)))
        if is_streaming:
            await stack.enter_async_context(stage.flow(publisher, per_second=50))
        ending = await socket.until_closed(6)
        late = time.time() - (ends_at + 1)

    assert ending == (4401, "expired")
    assert 0 <= late <= 1.2  # a second, and what a loaded machine takes to tell us
    assert len(socket.control("expiring")) == 1
    assert bool(socket.texts()) is is_streaming


async def _renewed_token_keeps_and_another_users_closes(gateway: Gateway) -> None:
    async with watch(gateway.url, "renewed", bearer=token(ttl_seconds=3)) as socket:
        await socket.until(lambda it: it.control("expiring"), 2)
        socket.send(kind="auth", token=token(ttl_seconds=600))
        await asyncio.sleep(4.5)
        assert socket.close is None
        socket.send(kind="auth", token=token("mallory"))
        code, _ = await socket.until_closed(2)
    assert code == 4401


# ---- revocations -------------------------------------------------------------------------------------------------


async def test_what_is_revoked_ends_on_every_gateway_within_five_seconds(stage: Stage) -> None:
    server = stage.server()
    proxy = await stage.proxy(server)
    near, far = await asyncio.gather(stage.gateway(server.url, **WITH_TOKENS), stage.gateway(proxy.url, **WITH_TOKENS))

    async with watch(far.url, client="bob", bearer=token("bob")) as bob:
        await _revoked_user_is_closed_and_refused("ann", near, far)
        proxy.drop_message(lambda payload: payload.startswith(b"1r"))
        await _revoked_user_is_closed_and_refused("eve", near, far)
        assert proxy.counts["messages_dropped"] == 1
        await _session_or_single_token_ends("session", near, far)
        await _session_or_single_token_ends("token", near, far)
        await _redis_away_closes_nobody(bob, proxy, near)


async def _revoked_user_is_closed_and_refused(user: str, near: Gateway, far: Gateway) -> None:
    old = token(user)
    async with (
        watch(near.url, client=f"{user}-1", bearer=old) as first,
        watch(far.url, client=f"{user}-2", bearer=old) as second,
    ):
        await _revoke(near, "user", user)
        assert [await socket.until_closed(5) for socket in (first, second)] == [(4401, "revoked")] * 2
    for gateway in (near, far):
        answer = await ask_once(gateway.url, "POST", "/v1/tickets", {}, headers={"Authorization": f"Bearer {old}"})
        assert answer.status == 401
    await asyncio.sleep(1.1)  # until the next second: tokens are dated in them
    async with watch(far.url, client=user, bearer=token(user)) as again:
        assert again.control("welcome")


async def _session_or_single_token_ends(what: str, near: Gateway, far: Gateway) -> None:
    async with (
        watch(far.url, f"of-{what}", bearer=token("dora", jti=f"meant-{what}")) as meant,
        watch(far.url, f"not-of-{what}", bearer=token("dora", jti=f"spared-{what}")) as spared,
    ):
        await _revoke(near, what, f"of-{what}" if what == "session" else f"meant-{what}")
        assert await meant.until_closed(5) == (4401, "revoked")
        await asyncio.sleep(0.2)
        assert spared.close is None


async def _redis_away_closes_nobody(bob: WatchedSocket, proxy: RedisProxy, near: Gateway) -> None:
    """What was known counts; what was revoked meanwhile is seen when Redis is back."""
    proxy.is_refusing = True
    proxy.cut()
    await _revoke(near, "user", "bob")
    await asyncio.sleep(3)
    assert bob.close is None
    proxy.is_refusing = False
    assert await bob.until_closed(5) == (4401, "revoked")


async def _revoke(gateway: Gateway, what: str, ident: str) -> None:
    bearer = {"Authorization": f"Bearer {token('root', scope='admin')}"}
    answer = await ask_once(gateway.url, "POST", "/v1/revocations", {what: ident}, headers=bearer)
    assert (answer.status, answer.json()) == (200, {"revoked": True})
