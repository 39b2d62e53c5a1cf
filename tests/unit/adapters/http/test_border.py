"""The border: every error is the one JSON body, foreign pages stay out, nothing of our inside and no token gets out."""

import asyncio
import gc
import io
import json
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote
from weakref import ref

import aiohttp
import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from yarl import URL

from gateway.adapters.http.errors import border, error_response
from gateway.adapters.logs import set_up_logs
from gateway.domain.wire.errors import ERROR_RULES, ErrorCode, RelayError
from gateway.settings import LogSettings, ServerSettings
from tests.unit.adapters.http.serving import AUTH, Served, serving
from tests.unit.adapters.http.test_producer_api import PUSH, delta, error_of

MARKER = "eyJtYXJrZXIiOjF9.c2VjcmV0LW1hcmtlcg.c2ln"
APP = "https://app.example.com"


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that is logged at any level."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    out = io.StringIO()
    set_up_logs(LogSettings(level="debug"), out)
    for name in ("aiohttp", "aiohttp.server", "aiohttp.access", "asyncio"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield out
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("aiohttp", "aiohttp.server", "aiohttp.access", "asyncio"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_has_its_status_and_the_same_body(code: ErrorCode) -> None:
    response = error_response(RelayError(code, "why", {"a": 1}), random.Random(1))

    rule = ERROR_RULES[code]
    error = json.loads(response.body)["error"]  # type: ignore[arg-type]
    assert response.status == rule.http_status
    assert (error["code"], error["message"], error["retryable"]) == (code.value, "why", rule.retryable)
    assert ("Retry-After" in response.headers) == (rule.http_status in (429, 503))


def test_retry_after_is_spread_and_never_earlier_than_asked() -> None:
    rng = random.Random(7)
    error = RelayError(ErrorCode.OVER_LIMIT, "slow down", after_ms=10_000)

    seconds = [int(error_response(error, rng).headers["Retry-After"]) for _ in range(200)]

    assert min(seconds) >= 10
    assert max(seconds) <= 20
    assert len(set(seconds)) > 5
    assert error.details == {}


async def test_unknown_paths_and_methods_are_answered_as_json() -> None:
    async with serving() as served:
        path = await served.ask("GET", "/nowhere/at/all")
        method = await served.ask("PUT", "/v1/sessions/chat-1")

    assert error_of(path) == (404, "not_found", {})
    assert error_of(method) == (405, "method_not_allowed", {"allowed": ["DELETE", "GET", "HEAD"]})
    assert method[2]["Allow"] == "DELETE, GET, HEAD"


@pytest.mark.parametrize("bad", ["%ff%fe", "%ED%A0%80", "a%", "a%z1", "%c3"])
@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/v1/sessions/{}/ws", "session"),
        ("POST", "/v1/sessions/{}/push", "session"),
        ("GET", "/v1/sessions/{}", "session"),
        ("DELETE", "/v1/sessions/{}", "session"),
        ("POST", "/v1/sessions/a/producers/{}", "name"),
        ("POST", "/v1/users/{}/push", "user"),
        ("GET", "/relay?sid={}&client=a", "sid"),
        ("GET", "/relay?sid=a&client={}", "client"),
        ("GET", "/relay?sid=a&{}=1", None),
    ],
)
async def test_what_is_no_percent_encoded_text_is_refused_by_name(method: str, path: str, name: str, bad: str) -> None:
    """Decoded all the same, two different spellings would be one id."""
    async with serving() as served:
        answer = await served.ask(method, URL(served.url + path.format(bad), encoded=True))

    status, code, details = error_of(answer)
    assert (status, code) == (400, "bad_request")
    assert len(details["parameters"]) == 1
    assert name is None or set(details["parameters"]) == {name}
    assert bad not in json.dumps(answer[1]) or name is None


@pytest.mark.parametrize("good", ["%C3%A4", "a%2Fb", "100%25", "%25ff", "a+b"])
async def test_percent_encoded_text_passes(good: str) -> None:
    async with serving() as served:
        status, body, _ = await served.ask("GET", URL(f"{served.url}/v1/sessions/{good}/ws?sid={good}", encoded=True))

    assert (200, {"session": unquote(good)}) == (status, body)


async def test_a_fault_of_ours_says_nothing_and_is_logged_without_secrets(logged: io.StringIO) -> None:
    async with serving() as served:
        answer = await served.ask("GET", f"/relay?break=1&token={MARKER}", token=MARKER)

    assert error_of(answer) == (500, "internal", {})
    assert "cannot serve" not in json.dumps(answer[1])
    assert "request_failed" in logged.getvalue()
    assert "RuntimeError" in logged.getvalue()
    assert MARKER not in logged.getvalue()


@pytest.mark.parametrize(
    "origins",
    [
        ["https://evil.com"],
        ["https://app.example.com.evil.com"],
        ["http://app.example.com"],
        ["https://app.example.com:8443"],
        ["null"],
        ["HTTPS://APP.EXAMPLE.COM"],
        [APP, APP],
        [APP, "https://evil.com"],
        [""],
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/relay?sid=s"), ("POST", PUSH), ("POST", "/v1/tickets")])
async def test_pages_of_others_stay_out(origins: list[str], method: str, path: str) -> None:
    async with serving(server=ServerSettings(allowed_origins=(APP,))) as served:
        headers = [("Origin", origin) for origin in origins]
        async with served.http.request(method, served.url + path, headers=headers, json=delta("x")) as response:
            body = await response.json()

    assert (response.status, body["error"]["code"]) == (403, "forbidden")
    assert "Access-Control-Allow-Origin" not in response.headers
    assert served.store.calls == 0


async def test_an_allowed_page_reads_answers_and_errors() -> None:
    async with serving(server=ServerSettings(allowed_origins=(APP,))) as served:
        fine = await served.post(PUSH, delta("x"), headers={"Origin": APP})
        error = await served.post(PUSH, {}, headers={"Origin": APP})
        preflight = await served.ask("OPTIONS", PUSH, headers={"Origin": APP})
        no_browser = await served.post(PUSH, delta("x"))

    assert [answer[0] for answer in (fine, error, preflight, no_browser)] == [200, 400, 204, 200]
    assert all(answer[2]["Access-Control-Allow-Origin"] == APP for answer in (fine, error, preflight))
    assert "Authorization" in preflight[2]["Access-Control-Allow-Headers"]
    assert "Access-Control-Allow-Origin" not in no_browser[2]


async def test_without_a_list_only_pages_of_the_same_host_may() -> None:
    async with serving() as served:
        same = await served.post(PUSH, delta("x"), headers={"Origin": served.url})
        other = await served.post(PUSH, delta("x"), headers={"Origin": "http://127.0.0.1:1"})

    assert (same[0], other[0]) == (200, 403)


async def raw(served: Served, request: bytes) -> bytes:
    """Send bytes, and read until the gateway closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    "request_bytes",
    [
        f"GET /relay HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {MARKER}\r\nbad header {MARKER}\r\n\r\n".encode(),
        f"{MARKER} /relay HTTP/9.9\r\n\r\n".encode(),
        f"GET /relay?token={MARKER} HTTP/1.1\r\nHost: x\r\nContent-Length: {MARKER}\r\n\r\n".encode(),
        f"GET /{'x' * 20_000}{MARKER} HTTP/1.1\r\n\r\n".encode(),
        f"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: {MARKER}{'x' * 20_000}\r\n\r\n".encode(),
        b"GET / HTTP/1.1\r\n" + b"".join(b"a%d: %b\r\n" % (n, MARKER.encode()) for n in range(200)) + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01" + MARKER.encode() + b"\r\n\r\n",
    ],
    ids=["header", "method", "length", "long-line", "long-header", "many-headers", "tls"],
)
async def test_what_is_no_http_is_refused_without_repeating_it(request_bytes: bytes, logged: io.StringIO) -> None:
    async with serving(AUTH) as served:
        answer = await raw(served, request_bytes)

    assert answer.split(b" ")[1] == b"400"
    assert b'"code":"bad_request"' in answer
    assert MARKER.encode() not in answer
    assert MARKER not in logged.getvalue()


def ways_to_bring_a_token() -> list[tuple[str, str, dict[str, Any]]]:
    header = {"headers": {"Authorization": f"Bearer {MARKER}"}}
    protocol = {"headers": {"Sec-WebSocket-Protocol": f"relayrouter.v1, bearer.{MARKER}"}}
    return [
        ("POST", PUSH, header),
        ("POST", PUSH, {"headers": {"Authorization": MARKER}}),
        ("GET", f"/nowhere?token={MARKER}", header),
        ("GET", f"/relay?sid=s&token={MARKER}", protocol),
        ("PUT", f"/relay?ticket={MARKER}", header),
        ("POST", f"/v1/sessions/{'x' * 200}/push?token={MARKER}", header),
        ("POST", "/v1/tickets", header),
        ("GET", "/relay", {"headers": {"Origin": "https://evil.com", "Authorization": f"Bearer {MARKER}"}}),
    ]


@pytest.mark.parametrize(("method", "path", "more"), ways_to_bring_a_token())
async def test_a_token_is_in_no_log_line_and_no_answer(
    method: str, path: str, more: dict[str, Any], logged: io.StringIO
) -> None:
    async with serving(AUTH) as served:
        answer = await served.ask(method, path, **more)
        logging.getLogger("aiohttp.server").debug("the log is on")

    assert MARKER not in json.dumps(answer[1])
    assert MARKER not in logged.getvalue()
    assert "the log is on" in logged.getvalue()


async def test_headers_that_trickle_are_cut_off() -> None:
    """Failure catalogue A15."""
    async with serving(server=ServerSettings(header_timeout_seconds=0.05)) as served:
        assert await raw(served, b"GET / HTTP/1.1\r\nHost: x\r\n") == b""
        assert await raw(served, b"") == b""


async def test_a_connection_that_asked_once_may_stay_longer_than_the_header_timeout() -> None:
    async with serving(server=ServerSettings(header_timeout_seconds=0.05)) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        request = b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
        writer.write(request)
        await reader.readuntil(b'"details":{}}}')
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(), 0.2)

        writer.write(request)
        again = await reader.readuntil(b'"details":{}}}')
        writer.close()
        await writer.wait_closed()

    assert b"404" in again


async def test_a_connection_that_asks_no_more_is_closed_when_the_keepalive_is_over() -> None:
    """By us only then: a proxy that closes earlier never sends a request into our closing."""
    async with serving(server=ServerSettings(keepalive_seconds=1)) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b'"details":{}}}')

        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()


async def test_after_stop_accepting_open_connections_go_on_and_new_ones_do_not() -> None:
    async with serving() as served:
        await served.post(PUSH, delta("a"))
        served.public.stop_accepting()

        assert (await served.post(PUSH, delta("b")))[0] == 200
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", served.port)


async def test_closing_ends_idle_and_hanging_requests_within_the_deadline() -> None:
    async with serving() as served:
        await served.post(PUSH, delta("a"))
        hanging = asyncio.ensure_future(served.ask("GET", "/relay?hang=1"))
        await asyncio.sleep(0.05)
        loop = asyncio.get_running_loop()
        began = loop.time()

        await served.public.close(0.2)

        assert loop.time() - began < 5  # aiohttp itself would wait for a minute
        with pytest.raises(aiohttp.ClientError):
            await hanging


@contextmanager
def no_collections() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("is_named", [False, True])
async def test_a_refused_request_leaves_nothing_for_the_garbage_collector(is_named: bool) -> None:
    """A storm refuses hundreds a second; a collection of what they leave would hold the loop for everybody."""
    at_border = border(None, random.Random(1))
    left = []

    class Held:
        """What a handler had in its hands, as its frame lives as long as the error."""

    async def refuse(_request: web.Request) -> web.StreamResponse:
        held = Held()
        left.append(ref(held))
        if is_named:
            refusal = RelayError(ErrorCode.BUSY, "not now")
            raise refusal
        raise RelayError(ErrorCode.BUSY, "not now")

    with no_collections():
        request = make_mocked_request("GET", "/v1/sessions/s/ws")
        response = await at_border(request, refuse)
        del request

        assert response.status == 503
        assert [each() for each in left] == [None]
