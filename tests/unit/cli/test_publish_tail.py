"""`publish` and `tail` as processes, against scripted servers: what they print, where, and with which exit code."""

import asyncio
import hashlib
import json
import os
import pty
import sys
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest

from tests.unit.adapters.client.fake_gateway import FakeGateway, cut_after, fake_gateway, saying
from tests.unit.adapters.client.frame_texts import control, delta, gap, message, welcome
from tests.unit.adapters.client.test_publisher import FakeLog, serving_log

TEXT = "né 👩🏽‍🚀 \u2028 line\nlast"


class Finished(NamedTuple):
    code: int | None
    out: bytes
    err: str


async def start(*arguments: str, stdin: int = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RR_")}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments, stdin=stdin, stdout=pipe, stderr=pipe, env=environment
    )


async def run(*arguments: str, data: bytes = b"") -> Finished:
    process = await start(*arguments)
    async with asyncio.timeout(20):
        out, err = await process.communicate(data)
    return Finished(process.returncode, out, err.decode())


async def on_terminal(*arguments: str) -> tuple[str, str]:
    """What it writes when its standard output is a terminal, and its standard error."""
    ours, theirs = pty.openpty()
    try:
        pipe = asyncio.subprocess.PIPE
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RR_")}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", *arguments, stdin=pipe, stdout=theirs, stderr=pipe, env=environment
        )
        async with asyncio.timeout(20):
            _, err = await process.communicate()
        os.set_blocking(ours, False)
        return os.read(ours, 64 * 1024).decode(), err.decode()
    finally:
        os.close(ours)
        os.close(theirs)


def sums(text: str) -> dict[str, Any]:
    data = text.encode()
    return {"bytes": len(data), "code_points": len(text), "sha256": hashlib.sha256(data).hexdigest()}


def run_end(seq: int, text: str, reasoning: str = "") -> str:
    payload = {"kind": "run_end", "run": "r", "reason": "complete", **sums(text), "reasoning": sums(reasoning)}
    return message(seq, payload)


RUN = (
    message(1, {"kind": "run_start", "run": "r"}),
    message(2, {"kind": "thinking", "run": "r", "text": "hm", "at": 0}),
    delta(3, TEXT[:5], 0),
    delta(4, TEXT[5:], len(TEXT[:5].encode())),
    run_end(5, TEXT, "hm"),
)


class TestTail:
    async def test_text_is_the_bytes_of_the_answer_and_nothing_else(self) -> None:
        async with fake_gateway(cut_after(welcome(0), *RUN[:3]), saying(welcome(3), *RUN[3:])) as gateway:
            finished = await run("tail", "s", "--text", "--until-run-end", "--url", gateway.url, "--first-wait", "0.01")

        assert (finished.code, finished.out) == (0, TEXT.encode())
        assert "the connection broke" in finished.err
        assert "stopped after e1.f1.5" in finished.err

    async def test_frames_are_printed_as_received(self) -> None:
        async with fake_gateway(saying(welcome(0), *RUN)) as gateway:
            finished = await run("tail", "s", "--frames", "--until-run-end", "--quiet", "--url", gateway.url)

        assert finished == (0, "".join(frame + "\n" for frame in (welcome(0), *RUN)).encode(), "")

    async def test_a_person_sees_reasoning_and_the_verdict_too(self) -> None:
        async with fake_gateway(saying(welcome(0), *RUN)) as gateway:
            finished = await run("tail", "s", "--until-run-end", "--url", gateway.url)

        assert finished.out.decode() == f"[r]\nhm\n{TEXT}\n[end of r: complete, digest equal]\n"

    @pytest.mark.parametrize("options", [["--text"], [], ["--frames"]])
    async def test_text_of_others_does_not_command_a_terminal(self, options: list[str]) -> None:
        """Lines and tabs stay."""
        evil = "a\x1b]0;title\x07b\x9b2Jc\x7f\rd\te\n"
        ask = control("ask_open", seq=1, ask={"ask": "a1", "message": "sure\x1b[2J?"})
        frames = (welcome(0), ask, RUN[0], delta(2, evil, 0), run_end(3, evil))
        async with fake_gateway(saying(*frames)) as gateway:
            out, err = await on_terminal("tail", "s", "--until-run-end", *options, "--url", gateway.url)

        shown = out.replace("\x1b[2m", "").replace("\x1b[0m", "").replace("\r\n", "\n")  # ours, and the terminal's own
        assert not set(shown + err) & set("\x1b\x07\x9b\x7f\r")
        assert "sure[2J?" in err
        if "--frames" not in options:
            assert "a]0;titleb2Jcd\te\n" in shown

    async def test_a_pipe_gets_every_byte(self) -> None:
        evil = "a\x1b]0;title\x07\x9b\r\n"
        async with fake_gateway(saying(welcome(0), RUN[0], delta(2, evil, 0), run_end(3, evil))) as gateway:
            finished = await run("tail", "s", "--text", "--until-run-end", "--url", gateway.url)

        assert finished.out == evil.encode()

    async def test_a_text_with_a_gap_is_told_on_standard_error_and_exit_code_2(self) -> None:
        frames = (welcome(0), gap(1, 3, "evicted", "e1.f1.3"), *RUN[3:])
        async with fake_gateway(saying(*frames)) as gateway:
            finished = await run("tail", "s", "--text", "--until-run-end", "--url", gateway.url)

        assert (finished.code, finished.out) == (2, TEXT[5:].encode())
        assert "messages 1 to 3 are gone (evicted)" in finished.err
        assert "the text received for run r is not whole: 3 messages had left the log" in finished.err

    async def test_a_digest_that_differs_is_exit_code_2(self) -> None:
        async with fake_gateway(saying(welcome(0), RUN[0], delta(2, "other", 0), run_end(3, "text"))) as gateway:
            finished = await run("tail", "s", "--text", "--until-run-end", "--quiet", "--url", gateway.url)

        assert (finished.code, finished.out) == (2, b"other")
        assert finished.err == "error: the text received for run r differs from the digest of its run_end\n"

    @pytest.mark.parametrize(
        ("arguments", "query"),
        [
            (["--since", "e1.f1.7"], {"cursor": "e1.f1.7"}),
            (["--since", "7"], {"last_received_seq": "7"}),
            (["--from-start", "--client", "phone"], {"from": "start", "client": "phone"}),
        ],
    )
    async def test_where_to_begin_comes_from_the_command_line(
        self, arguments: list[str], query: dict[str, str]
    ) -> None:
        async with fake_gateway(saying(welcome(7), run_end(8, ""))) as gateway:
            await run("tail", "s", "--until-run-end", "--token", "t", "--url", gateway.url, *arguments)

        assert query.items() <= gateway.queries[0].items()
        assert gateway.tokens == ["Bearer t"]

    async def test_the_servers_no_is_one_line_and_exit_code_2(self) -> None:
        async with fake_gateway(saying(), upgrade_statuses=[404]) as gateway:
            finished = await run("tail", "s", "--url", gateway.url)

        assert finished.code == 2
        assert finished.err.count("\n") == 1
        assert "the reason in words" in finished.err

    @pytest.mark.parametrize(
        ("arguments", "part"),
        [
            (["--text", "--frames"], "not both"),
            (["--since", "e.f.1", "--from-start"], "not both"),
            (["--since", "nonsense"], "<epoch>.<fork>.<seq>"),
            (["--url", "nonsense"], "http://host:8080"),
            (["--client", "\n"], "printable"),
        ],
    )
    async def test_a_bad_command_line_is_one_line_and_exit_code_2(self, arguments: list[str], part: str) -> None:
        finished = await run("tail", "s", *arguments)

        assert finished.code == 2
        assert finished.err.startswith("error: ")
        assert finished.err.count("\n") == 1
        assert part in finished.err

    async def test_interrupting_it_says_where_to_go_on(self) -> None:
        async with AsyncExitStack() as stack:
            heard = asyncio.Event()

            async def scene(ws, gateway: FakeGateway) -> None:
                await ws.send_str(welcome(0))
                await ws.send_str(delta(1, "a", 0))
                await gateway.hear(ws)
                heard.set()
                await gateway.hear_all(ws)

            gateway = await stack.enter_async_context(fake_gateway(scene))
            process = await start("tail", "s", "--text", "--url", gateway.url)
            async with asyncio.timeout(20):
                await heard.wait()
                process.send_signal(2)
                out, err = await process.communicate()

        assert (process.returncode, out) == (130, b"a")
        assert "stopped after e1.f1.1" in err.decode()

    async def test_reconnect_later_is_told(self) -> None:
        later = control("reconnect_later", after_ms=10, reason="drain")
        async with fake_gateway(saying(welcome(0), later, code=1012), saying(welcome(0), run_end(1, ""))) as gateway:
            finished = await run("tail", "s", "--until-run-end", "--url", gateway.url, "--first-wait", "0.01")

        assert "asks to come back in 10 ms (drain)" in finished.err


class TestPublish:
    async def test_standard_input_is_published_as_it_arrives(self) -> None:
        log = FakeLog()
        async with serving_log(log) as url:
            process = await start("publish", "s", "--push", "--run", "r", "--json", "--url", url)
            assert process.stdin is not None
            process.stdin.write("no line break é".encode()[:-1])
            async with asyncio.timeout(20):
                while len(log.messages) < 2:
                    await asyncio.sleep(0.01)
                out, _ = await process.communicate("é!".encode()[1:])

        assert process.returncode == 0
        assert log.texts == ["run_start", "no line break ", "é!", "run_end"]
        summary = json.loads(out)
        assert (summary["run"], summary["reason"], summary["bytes"], summary["messages"]) == ("r", "complete", 17, 4)

    async def test_a_providers_stream_is_one_delta_a_chunk(self) -> None:
        lines = [{"choices": [{"delta": {"content": word}, "finish_reason": None}]} for word in ("a", "b", "c")]
        data = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
        log = FakeLog()
        async with serving_log(log) as url:
            finished = await run("publish", "s", "--push", "-", "--dialect", "openai", "--url", url, data=data.encode())

        assert (finished.code, log.texts) == (0, ["run_start", "a", "b", "c", "run_end"])
        assert "complete, 3 bytes of text, 5 messages" in finished.err

    @pytest.mark.parametrize(
        ("last", "reason", "part"),
        [
            ("nonsense", "failed", "line 2 is not JSON"),
            ("", "incomplete", "neither a finish_reason nor [DONE]"),
        ],
    )
    async def test_a_broken_stream_is_delivered_and_exit_code_2(self, last: str, reason: str, part: str) -> None:
        data = json.dumps({"choices": [{"delta": {"content": "a"}}]}) + "\n" + last
        log = FakeLog()
        async with serving_log(log) as url:
            finished = await run("publish", "s", "--push", "--dialect", "openai", "--url", url, data=data.encode())

        assert (finished.code, log.texts) == (2, ["run_start", "a", "run_end"])
        assert log.messages[-1]["reason"] == reason
        assert part in finished.err.splitlines()[-1]

    async def test_a_paced_text_comes_in_tokens(self, tmp_path) -> None:
        file = tmp_path / "text"
        file.write_text("one two é three")
        log = FakeLog()
        async with serving_log(log) as url:
            finished = await run("publish", "s", "--push", str(file), "--tokens-per-second", "200", "--url", url)

        assert finished.code == 0
        assert log.texts == ["run_start", "one ", "two ", "é t", "hree", "run_end"]

    async def test_an_interrupt_ends_the_run_in_the_log(self) -> None:
        log = FakeLog()
        async with serving_log(log) as url:
            process = await start("publish", "s", "--push", "--url", url)
            assert process.stdin is not None
            process.stdin.write(b"a")
            async with asyncio.timeout(20):
                while len(log.messages) < 2:
                    await asyncio.sleep(0.01)
                process.send_signal(2)
                _, err = await process.communicate()

        assert (process.returncode, log.texts) == (2, ["run_start", "a", "run_end"])
        assert "the run ended as incomplete: the input broke off: stopped by a signal" in err.decode()

    @pytest.mark.parametrize(
        ("arguments", "part"),
        [
            (["s", "/absent/file"], "/absent/file: No such file"),
            (["s", "--run", "\n"], "run must have printable"),
            (["s", "--url", "nonsense"], "http://host:8080"),
            (["", "-"], "session id must have 1 to 128 bytes"),
        ],
    )
    async def test_a_bad_command_line_is_one_line_and_exit_code_2(self, arguments: list[str], part: str) -> None:
        finished = await run("publish", *arguments)

        assert finished.code == 2
        assert finished.err.startswith("error: ")
        assert finished.err.count("\n") == 1
        assert part in finished.err
