"""`publish` and `tail` as a person uses them, on real gateways: the bytes that go in are the bytes that come out."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from gateway.domain.streams.dialects import OpenAiDialect
from gateway.domain.streams.pieces import TextPiece
from gateway.samples import LONG_ANSWER, REASONED_ANSWER, load_sample
from loadtest.faults import RedisProxy
from loadtest.processes import Gateway, Server

DEADLINE_SECONDS = 45
SECRET = "a-secret-for-this-test-alone-0123456789"


class Finished(NamedTuple):
    code: int | None
    out: bytes
    err: str


class Command:
    """One `relayrouter` process; what it prints is kept as it comes."""

    def __init__(self, process: asyncio.subprocess.Process, arguments: tuple[str, ...]) -> None:
        self.process = process
        self.arguments = arguments
        self.out = bytearray()
        self.err = bytearray()

    async def pump(self) -> None:
        await asyncio.gather(self._read(self.process.stdout, self.out), self._read(self.process.stderr, self.err))
        await self.process.wait()

    async def _read(self, stream: asyncio.StreamReader | None, into: bytearray) -> None:
        assert stream is not None
        while data := await stream.read(65_536):
            into += data

    @property
    def says(self) -> str:
        return self.err.decode(errors="replace")

    async def until(self, wanted: str | int) -> None:
        """Until standard error has these words, or standard output so many bytes."""
        while (len(self.out) < wanted) if isinstance(wanted, int) else (wanted not in self.says):
            assert self.process.returncode is None, self.says
            await asyncio.sleep(0.02)


class Commands:
    """`async with Commands() as commands`: whatever was started is over at the end, one way or the other."""

    async def __aenter__(self) -> Self:
        self._started: list[tuple[Command, asyncio.Task[None]]] = []
        self._stack = AsyncExitStack()
        await self._stack.enter_async_context(asyncio.timeout(DEADLINE_SECONDS))
        self._stack.push_async_callback(self._end)
        return self

    async def __aexit__(self, *exc: object) -> bool | None:
        return await self._stack.__aexit__(*exc)  # type: ignore[arg-type]

    async def _end(self) -> None:
        for command, pump in self._started:
            if command.process.returncode is None:
                command.process.kill()
                sys.stderr.write(f"ended by the test: {command.arguments}\n{command.says}\n")
            await pump

    async def start(self, *arguments: str) -> Command:
        pipe = asyncio.subprocess.PIPE
        environ = {name: value for name, value in os.environ.items() if not name.startswith("RR_")}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "gateway", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=environ,
        )
        command = Command(process, arguments)
        self._started.append((command, asyncio.create_task(command.pump())))
        return command

    async def finish(self, command: Command) -> Finished:
        await next(pump for started, pump in self._started if started is command)
        return Finished(command.process.returncode, bytes(command.out), command.says)

    async def run(self, *arguments: str) -> Finished:
        return await self.finish(await self.start(*arguments))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "valkey").start()
    yield server
    server.end()


@asynccontextmanager
async def serving(redis_url: str, folder: Path, count: int, **settings: str) -> AsyncIterator[list[Gateway]]:
    environ = {"RR_AUTH__MODE": "none"} | settings
    gateways = [Gateway(f"gw-{n}", redis_url, folder / f"gw-{n}.log", environ) for n in range(count)]
    try:
        await asyncio.gather(*(gateway.start() for gateway in gateways))
        yield gateways
    finally:
        for gateway in gateways:
            await gateway.end()


def urls(gateways: Sequence[Gateway]) -> list[str]:
    return [word for gateway in gateways for word in ("--url", gateway.url)]


def serving_now(tail: Command, gateways: Sequence[Gateway]) -> Gateway:
    """The gateway that the tail connected to last."""
    return max(gateways, key=lambda gateway: tail.says.rfind(f"connected to {gateway.ident}"))


@pytest.mark.fault
async def test_a_stream_outlives_kill_9_of_one_gateway_after_the_other(server: Server, tmp_path: Path) -> None:
    sample = load_sample(LONG_ANSWER)
    file = tmp_path / "stream.jsonl"
    file.write_bytes(sample.chunks)
    size = len(sample.text.encode())

    async with serving(server.url, tmp_path, 3) as gateways, Commands() as commands:
        tail = await commands.start("tail", "s", "--text", "--until-run-end", "--first-wait", "0.2", *urls(gateways))
        await tail.until("connected to")
        publish = await commands.start(
            "publish", "s", str(file), "--dialect", "openai", "--tokens-per-second", "250", "--json", *urls(gateways)
        )
        for share in (0.2, 0.5):
            await tail.until(int(size * share))
            before = tail.says.count("connected to")
            await serving_now(tail, gateways).kill()
            while tail.says.count("connected to") == before:
                await asyncio.sleep(0.02)
        received, sent = await commands.finish(tail), await commands.finish(publish)

    assert (received.code, sent.code) == (0, 0), received.err + sent.err
    assert received.out == sample.text.encode()
    assert received.err.count("connected to") >= 3
    assert "gap" not in received.err
    assert json.loads(sent.out)["bytes"] == size


@pytest.mark.fault
async def test_lost_writes_are_published_again_and_shown_once(server: Server, tmp_path: Path) -> None:
    """A replica that lacks the last writes takes over; the publisher still holds them, the reader has shown them."""
    sample = load_sample(LONG_ANSWER)
    file = tmp_path / "stream.jsonl"
    file.write_bytes(sample.chunks)
    replica = Server(tmp_path / "replica").start()
    proxy = RedisProxy(server.target)
    await proxy.start()
    size = len(sample.text.encode())

    try:
        replica.follow(server)
        async with serving(proxy.url, tmp_path, 1) as gateways, Commands() as commands:
            tail = await commands.start("tail", "s", "--text", "--until-run-end", *urls(gateways))
            await tail.until("connected to")
            publish = await commands.start(
                "publish",
                "s",
                str(file),
                "--dialect",
                "openai",
                "--tokens-per-second",
                "250",
                "--json",
                *urls(gateways),
            )
            await tail.until(size // 5)
            replica.promote()
            await tail.until(size // 3)
            proxy.target = replica.target
            proxy.cut()
            received, sent = await commands.finish(tail), await commands.finish(publish)
    finally:
        await proxy.stop()
        replica.end()

    assert (received.code, sent.code) == (0, 0), received.err + sent.err
    assert received.err.count("are gone (epoch_changed)") == 1
    assert json.loads(sent.out)["lost_writes"] > 0
    assert received.out == sample.text.encode()


async def test_frames_and_reasoning_and_resuming_from_a_cursor(server: Server, tmp_path: Path) -> None:
    sample = load_sample(REASONED_ANSWER)
    pieces = OpenAiDialect().feed(sample.chunks)
    seq = len(pieces) - 40  # in the middle of the answer
    file = tmp_path / "stream.jsonl"
    file.write_bytes(sample.chunks)

    async with serving(server.url, tmp_path, 2) as (first, second), Commands() as commands:
        # Pushed: there a message is one of the provider's pieces, so that its number can be told.
        sent = await commands.run("publish", "a/b ü", str(file), "--push", "--dialect", "openai", "--url", first.url)
        common = ("a/b ü", "--until-run-end", "--quiet", "--url", second.url)
        whole = await commands.run("tail", *common, "--from-start", "--frames")
        frames = [json.loads(line) for line in whole.out.split(b"\n") if line]
        line = frames[0]["payload"]["cursor"].rpartition(".")[0]
        rest = await commands.run("tail", *common, "--since", f"{line}.{seq}", "--text")

    assert (sent.code, whole.code, rest.code) == (0, 0, 0), sent.err + whole.err + rest.err
    messages = [frame for frame in frames if frame["type"] == "text"]
    assert [frame["payload"]["kind"] for frame in (messages[0], messages[-1])] == ["run_start", "run_end"]
    assert (messages[0]["seq"], messages[-1]["seq"]) == (1, len(pieces) + 2)
    text, thinking = (
        "".join(frame["payload"]["text"] for frame in messages if frame["payload"]["kind"] == kind)
        for kind in ("delta", "thinking")
    )
    assert (text, thinking) == (sample.text, sample.reasoning)
    assert rest.out.decode() == "".join(piece.text for piece in pieces[seq - 1 :] if isinstance(piece, TextPiece))


async def test_tokens_of_the_command_line_open_the_session_that_they_cover(server: Server, tmp_path: Path) -> None:
    config = tmp_path / "relay.yaml"
    config.write_text(f"auth: {{keys: [{{kid: k1, algorithm: HS256, secret: {SECRET}}}]}}\n")
    text = tmp_path / "text"
    text.write_bytes("plain é\u2028text\r\n".encode())

    async with (
        serving(
            server.url, tmp_path, 1, RR_AUTH__MODE="jwt", RR_CONFIG=str(config), RR_SERVER__AUTH_TIMEOUT_SECONDS="0.5"
        ) as (gateway,),
        Commands() as commands,
    ):
        sign = ("token", "--config", str(config), "--sub", "ann", "--session", "chat-*")
        token = (await commands.run(*sign)).out.decode().strip()
        reads_only = (await commands.run(*sign, "--scope", "subscribe")).out.decode().strip()
        tail = await commands.start(
            "tail", "chat-1", "--text", "--until-run-end", "--token", reads_only, "--url", gateway.url
        )
        await tail.until("connected to")
        sent = await commands.run("publish", "chat-1", str(text), "--token", token, "--url", gateway.url)
        received = await commands.finish(tail)
        refused = [
            await commands.run("tail", "chat-1", "--url", gateway.url),
            await commands.run("tail", "other", "--token", token, "--url", gateway.url),
            await commands.run("publish", "chat-1", str(text), "--token", reads_only, "--url", gateway.url),
        ]

    assert (sent.code, received.code) == (0, 0), sent.err + received.err
    assert received.out == text.read_bytes()
    assert [finished.code for finished in refused] == [2, 2, 2]
    assert [finished.err.count("\n") for finished in refused] == [1, 1, 1], refused
    assert all(finished.err.startswith("error: ") for finished in refused)
