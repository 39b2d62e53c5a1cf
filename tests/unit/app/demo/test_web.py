"""The demo's page: its files, its buttons, and nothing else."""

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from gateway.adapters.client.requests import RequestRefused
from gateway.app.demo.gateways import GatewayProcess
from gateway.app.demo.stage import Stage
from gateway.app.demo.tally import Source
from gateway.app.demo.web import DemoPage
from gateway.core.tasks import TaskOwner
from gateway.domain.operator_error import OperatorError
from gateway.domain.streams.segment import SegmentMode


class Person:
    """A reader of the demo."""

    name = "reader-1"

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked
        self.pieces = deque[Any]()

    def status(self) -> dict[str, Any]:
        return {"state": "live"}

    async def interrupt(self) -> None:
        self.asked.append("interrupt")

    async def toggle_pause(self) -> None:
        self.asked.append("pause")

    async def say(self, text: str) -> None:
        self.asked.append(f"say {text}")

    async def answer(self, ask: str, value: str) -> None:
        self.asked.append(f"answer {ask} {value}")
        raise RequestRefused({"code": "not_found", "message": "no such ask"})


class Cluster:
    """Of three gateways that cannot become fewer; its canary is on trial."""

    def __init__(self, asked: list[str]) -> None:
        def noting(what: str) -> Callable[..., Any]:
            async def note(*words: object) -> None:
                asked.append(" ".join(map(str, (what, *words))))

            return note

        self.operations = SimpleNamespace(
            running=None, can_grow=True, can_shrink=False, roll=noting("roll"),
            scale_out=noting("out"), scale_in=noting("in"),
        )  # fmt: skip
        self.storms = SimpleNamespace(is_running=False, crowd_size=500, run=noting("storm"), send_home=noting("home"))
        self.routes = SimpleNamespace(
            report={"canary": {"verdict": None}}, decide=noting("decide"), begin_canary=noting("canary")
        )

    def state(self) -> dict[str, Any]:
        return {"operation": self.operations.running}


class Buttons:
    """What the page needs of a stage that shows nothing yet; notes what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gateways = SimpleNamespace(members=[GatewayProcess("gateway-1", state="up")])
        self.redis_relay = SimpleNamespace(is_cut=False)
        self.relay = SimpleNamespace(port=1)
        self.readers: list[Any] = [Person(self.asked)]
        self.agent = SimpleNamespace(segment=SegmentMode.RAW, items=[{"kind": "input"}], ask=self.ask)
        self.figures = {"run": "r", "tokens": 3}
        self.open_run: str | None = "r"
        self.events: list[Any] = []
        self.slow_reader = None
        self.session = "s"
        self.source = Source({"r": "wörld"}, {"r": ""})
        self.cluster = Cluster(self.asked)
        self.media = SimpleNamespace(is_on=False, sent=SimpleNamespace(audio=1, video=2), switch=self.switch)

    def switch(self, *, is_on: bool) -> None:
        self.asked.append(f"media {is_on}")

    def browsers(self) -> dict[str, str]:
        return {"js-1": "gateway-1"}

    def put_on_network(self, client: str, network: str, *, takes_upgrades: bool) -> None:
        self.asked.append(f"network {client} {network} {takes_upgrades}")

    def tally(self) -> dict[str, Any]:
        return {"digests_equal": None, "faults": ["one"]}

    def kill(self, member: GatewayProcess) -> bool:
        self.asked.append(f"kill {member.name}")
        return True

    terminate = kill

    async def freeze(self, member: GatewayProcess) -> None:
        self.asked.append(f"freeze {member.name}")

    async def cut_redis(self) -> None:
        self.asked.append("cut")

    def toggle_slow_reader(self) -> None:
        self.asked.append("slow")

    async def ask(self, run: str) -> None:
        self.asked.append(f"ask {run}")

    def note(self, what: str) -> None:
        self.asked.append(f"note {what}")


Ask = Callable[..., Any]


@asynccontextmanager
async def page() -> AsyncIterator[tuple[Buttons, Ask]]:
    stage, owner = Buttons(), TaskOwner()
    made = DemoPage(cast("Stage", stage), owner)
    port = await made.start("127.0.0.1", 0)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
        yield stage, http.request
    await made.stop()
    await owner.stop(1)


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/", "text/html"),
        ("/page.js", "text/javascript"),
        ("/own.js", "text/javascript"),
        ("/panels.js", "text/javascript"),
        ("/call.js", "text/javascript"),
        ("/media.js", "text/javascript"),
        ("/relayrouter.js", "text/javascript"),
        ("/style.css", "text/css"),
    ],
)
async def test_its_files_are_never_stale(path: str, content_type: str) -> None:
    async with page() as (_, ask), ask("GET", path) as answer:
        assert (answer.status, answer.content_type) == (200, content_type)
        assert answer.headers["Cache-Control"] == "no-store"
        assert len(await answer.read()) > 100


@pytest.mark.parametrize(
    "path",
    [
        "/run.py",
        "/missing.js",
        "/%2e%2e/run.py",
        "/actions/gateway/gateway-9/kill",
        "/actions/segment/words",
        "/actions/reader/reader-9/pause",
        "/actions/reader/reader-1/leave",
        "/actions/network/js-1",
        "/actions/cluster/explode",
        "/actions/routes/canary/51",
        "/actions/media/up",
        "/source/r9",
    ],
)
async def test_anything_else_is_not_there(path: str) -> None:
    async with page() as (stage, ask):
        for method in ("GET", "POST"):
            async with ask(method, path) as answer:
                assert answer.status in (404, 405)
        assert stage.asked == []


async def test_nothing_but_its_own_files_and_the_gateways_is_used_by_the_page() -> None:
    async with page() as (_, ask), ask("GET", "/") as answer:
        policy = answer.headers["Content-Security-Policy"].split("; ")
        html = await answer.text()

    assert policy[:3] == ["default-src 'none'", "script-src 'self'", "style-src 'self'"]
    assert policy[-1] == "connect-src 'self' http://*:1 ws://*:1"
    assert "style=" not in html
    assert "<style" not in html
    assert "onclick" not in html


async def test_each_button_does_what_it_says() -> None:
    async with page() as (stage, ask):
        for path in ("gateway/gateway-1/kill", "gateway/gateway-1/freeze", "redis/cut", "client/slow"):
            async with ask("POST", f"/actions/{path}") as answer:
                assert answer.status == 204

        assert stage.asked == ["kill gateway-1", "freeze gateway-1", "cut", "slow"]


async def test_each_button_of_the_cluster_does_what_it_says() -> None:
    paths = [
        "cluster/roll", "cluster/scale-out", "cluster/storm", "cluster/send-home", "routes/canary/50",
        "routes/promote", "routes/rollback", "media/on", "media/off",
    ]  # fmt: skip
    async with page() as (stage, ask):
        for path in paths:
            async with ask("POST", f"/actions/{path}") as answer:
                assert answer.status == 204

        assert stage.asked == [
            "roll", "out", "storm", "home", "canary 50", "decide promote", "decide rollback",
            "media True", "media False",
        ]  # fmt: skip


async def test_what_cannot_be_now_is_refused() -> None:
    async with page() as (stage, ask):
        stage.cluster.routes.report = {}
        for path in ("cluster/scale-in", "routes/promote"):
            async with ask("POST", f"/actions/{path}") as answer:
                assert answer.status == 409
        stage.cluster.operations.running = "roll 1 of 3"
        for path in ("cluster/roll", "cluster/scale-out", "cluster/storm", "cluster/send-home"):
            async with ask("POST", f"/actions/{path}") as answer:
                assert answer.status == 409

        assert stage.asked == []


async def test_people_at_the_readers() -> None:
    async with page() as (stage, ask):
        actions: list[tuple[str, Any]] = [
            ("reader/reader-1/interrupt", None),
            ("reader/reader-1/pause", None),
            ("reader/reader-1/say", {"text": "hi"}),
            ("reader/reader-1/answer", {"ask": "a1", "value": "yes"}),
            ("agent/ask", None),
            ("segment/sentence", None),
        ]
        for path, body in actions:
            async with ask("POST", f"/actions/{path}", json=body) as answer:
                assert answer.status == 204
        async with ask("POST", "/actions/reader/reader-1/say", data=b"{") as answer:
            assert answer.status == 400
        async with ask("POST", "/actions/reader/reader-1/say", data=b"x" * 5_000) as answer:
            assert answer.status == 413

        wanted = ["interrupt", "pause", "say hi", "answer a1 yes", "note reader-1: not_found: no such ask", "ask r"]
        assert stage.asked == wanted
        assert stage.agent.segment is SegmentMode.SENTENCE


@pytest.mark.parametrize(
    ("client", "body", "asked"),
    [
        ("js-1", {"network": "3G"}, ["network js-1 3G True"]),
        ("js-1", {"network": "good", "blocks_websockets": True}, ["network js-1 good False"]),
        ("js-1", {"network": "5G"}, []),
        ("js-1", {"network": ["3G"]}, []),
        ("js%201", {"network": "3G"}, []),
    ],
)
async def test_network_of_one_browser(client: str, body: Any, asked: list[str]) -> None:
    async with page() as (stage, ask), ask("POST", f"/actions/network/{client}", json=body) as answer:
        assert answer.status == (204 if asked else 404)
        assert stage.asked == asked


async def test_source_of_a_run_is_what_the_provider_sent() -> None:
    async with page() as (_, ask), ask("GET", "/source/r") as answer:
        assert await answer.json() == {"text": "wörld", "reasoning": "", "ended": False}


async def test_a_feed_begins_with_the_session_and_the_state_and_ends_with_the_page() -> None:
    async with page() as (_, ask), ask("GET", "/feed") as answer:
        lines = [(await answer.content.readline()).decode() for _ in range(4)]

        assert lines[0] == "event: hello\n"
        assert '"session": "s"' in lines[1]
        assert '"faults": 1' in lines[3]


async def test_a_port_that_is_taken_is_told_in_a_line() -> None:
    async with page() as (stage, ask):
        async with ask("GET", "/") as answer:
            port = answer.url.port
        second = DemoPage(cast("Stage", stage), TaskOwner())
        with pytest.raises(OperatorError, match="choose another port"):
            await second.start("127.0.0.1", port or 0)
        await second.stop()
