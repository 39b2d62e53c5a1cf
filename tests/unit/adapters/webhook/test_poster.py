"""One request to a receiver: signed, bounded, no redirects, never to an address that is ours (SSRF, DNS rebinding)."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from gateway.adapters.webhook.poster import HttpPoster
from gateway.adapters.webhook.signature import is_signed
from gateway.ports import Posted, PostOutcome
from gateway.settings import Receiver

SECRET = "s" * 32
BODY = b'{"id":"chat:c:1","kind":"input"}'


class Site:
    """A receiver on loopback."""

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.answer = web.Response
        self.port = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        return self.answer()


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    it = Site()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", it.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    server = web.TCPSite(runner, "127.0.0.1", 0)
    await server.start()
    it.port = runner.addresses[0][1]
    try:
        yield it
    finally:
        await runner.cleanup()


@pytest.fixture
async def poster() -> AsyncIterator[HttpPoster]:
    it = HttpPoster(time.time, {"hook": SECRET.encode()})
    yield it
    await it.close()


def receiver(it: Site, *, host: str = "127.0.0.1", **fields: Any) -> Receiver:
    fields = {"allow_private": True, "timeout_seconds": 5} | fields
    return Receiver(name="hook", url=f"http://{host}:{it.port}/hook", secret=SECRET, **fields)


def unlocked(it: Receiver, url: str) -> Receiver:
    """The same without allow_private: what a name that changes its address would make of it."""
    return it.model_copy(update={"allow_private": False, "url": url})


async def post(poster: HttpPoster, to: Receiver, **fields: Any) -> Posted:
    return await poster.post(to, BODY, **({"item_id": "chat:c:1", "attempt": 2, "traceparent": None} | fields))


async def test_the_item_comes_as_it_is_with_id_attempt_trace_and_a_signature_that_holds(poster: HttpPoster) -> None:
    async with site() as it:
        posted = await post(poster, receiver(it), item_id="chät:c:1", traceparent="00-a-b-01")

    headers = it.requests[0].headers
    assert (PostOutcome.OK, "status 200") == (posted.outcome, posted.detail)
    assert [BODY] == it.bodies
    assert ("POST", "ch%C3%A4t:c:1", "2", "00-a-b-01", "application/json") == (
        it.requests[0].method,
        headers["RelayRouter-Id"],
        headers["RelayRouter-Attempt"],
        headers["traceparent"],
        headers["Content-Type"],
    )
    stamp, given = headers["RelayRouter-Timestamp"], headers["RelayRouter-Signature"]
    assert is_signed(SECRET.encode(), stamp, BODY, given, time.time())


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(poster: HttpPoster, status: int) -> None:
    async with site() as it:
        it.answer = lambda: web.Response(status=status, headers={"Location": f"http://127.0.0.1:{it.port}/inside"})
        posted = await post(poster, receiver(it))

    assert (PostOutcome.REFUSED, f"status {status}") == (posted.outcome, posted.detail)
    assert ["/hook"] == [request.path for request in it.requests]


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7), ("100000", 300), ("-1", 0), ("Fri, 31 Dec 1999 23:59:59 GMT", 0)]
)
async def test_the_receivers_word_for_when_to_come_back_is_bounded(
    poster: HttpPoster, value: str, seconds: float
) -> None:
    async with site() as it:
        it.answer = lambda: web.Response(status=503, headers={"Retry-After": value})
        posted = await post(poster, receiver(it))

    assert (PostOutcome.REFUSED, seconds) == (posted.outcome, posted.after_seconds)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1", "0.0.0.0"]
)
async def test_no_way_to_write_a_private_address_leads_there(poster: HttpPoster, host: str) -> None:
    async with site() as it:
        to = unlocked(receiver(it), f"http://{host}:{it.port}/hook")
        posted = await post(poster, to)

    assert posted.outcome in (PostOutcome.FORBIDDEN, PostOutcome.FAILED)
    assert [] == it.requests
    if host in ("127.0.0.1", "localhost"):
        assert PostOutcome.FORBIDDEN is posted.outcome


async def test_a_name_that_changes_its_answer_after_the_check_is_refused_where_it_is_connected(
    poster: HttpPoster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site() as it:
        loop = asyncio.get_running_loop()
        answers = ["8.8.8.8", "127.0.0.1"]
        asked: list[str] = []

        async def resolve(host: str, port: int, **_: Any) -> Any:
            asked.append(answers[min(len(asked), 1)])
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (asked[-1], port))]

        monkeypatch.setattr(loop, "getaddrinfo", resolve)
        await loop.getaddrinfo("rebinds.example", 80)  # somebody looked before: it was public
        posted = await post(poster, unlocked(receiver(it), f"http://rebinds.example:{it.port}/hook"))

    assert ["8.8.8.8", "127.0.0.1"] == asked
    assert PostOutcome.FORBIDDEN is posted.outcome
    assert [] == it.requests


async def test_a_receiver_that_does_not_answer_costs_its_time_out_only(poster: HttpPoster) -> None:
    it = Site()
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as frozen:  # its kernel accepts, nobody answers
        it.port = frozen.getsockname()[1]
        posted = await post(poster, receiver(it, timeout_seconds=0.2))

    assert (PostOutcome.FAILED, "no answer within 0.2 s") == (posted.outcome, posted.detail)
    assert time.monotonic() - began < 3


async def test_a_receiver_that_is_not_there_is_a_failure(poster: HttpPoster) -> None:
    async with site() as it:
        to = receiver(it)
    posted = await post(poster, to)

    assert (PostOutcome.FAILED, "no connection") == (posted.outcome, posted.detail)


async def test_an_endless_answer_is_not_read(poster: HttpPoster) -> None:
    async with site() as it:
        it.answer = lambda: web.Response(body=b"x" * 5_000_000)
        posted = await post(poster, receiver(it))

    assert PostOutcome.OK is posted.outcome


async def test_the_environments_proxy_is_not_used(poster: HttpPoster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    async with site() as it:
        posted = await post(poster, receiver(it))

    assert PostOutcome.OK is posted.outcome
