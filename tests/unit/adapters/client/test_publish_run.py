"""One stream becomes one run: complete, cut or failed, with everything that came before."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.adapters.client.publish_run import Pace, offer_run, publish_run
from gateway.adapters.client.publisher import MessageTooLarge, Publisher, PublishError
from gateway.adapters.client.settings import PublisherSettings
from gateway.domain.streams.dialects import DialectName, open_dialect
from gateway.domain.streams.pieces import EndReason, StreamEnd
from gateway.domain.streams.run_script import RunScript
from gateway.samples import Sample, load_dialect_samples


class Collector(Publisher):
    """Keeps what is offered."""

    def __init__(self, max_bytes: int = 100_000) -> None:
        super().__init__(["http://127.0.0.1:1"], "s")
        self.payloads: list[dict[str, Any]] = []
        self._max_bytes = max_bytes

    async def offer(self, payload: dict[str, Any]) -> None:
        if len(str(payload)) > self._max_bytes:
            raise MessageTooLarge("too large")
        self.payloads.append(payload)

    @property
    def kinds(self) -> list[str]:
        return [payload["kind"] for payload in self.payloads]

    @property
    def text(self) -> str:
        return "".join(payload["text"] for payload in self.payloads if payload["kind"] == "delta")


async def source(*parts: bytes | OSError) -> AsyncIterator[bytes]:
    for part in parts:
        if isinstance(part, OSError):
            raise part
        yield part


async def offer(collector: Collector, dialect: DialectName, *parts: bytes | OSError) -> StreamEnd:
    return await offer_run(collector, source(*parts), open_dialect(dialect), RunScript("r"))


async def test_a_stream_is_a_run_from_start_to_end() -> None:
    collector = Collector()

    end = await offer(collector, DialectName.TEXT, b"a\xc3", b"\xa9", b"b")

    assert collector.kinds == ["run_start", "delta", "delta", "delta", "run_end"]
    assert (collector.text, end.reason) == ("aéb", EndReason.COMPLETE)
    assert collector.payloads[-1]["bytes"] == 4


@pytest.mark.parametrize("sample", load_dialect_samples(), ids=lambda sample: sample.name)
async def test_each_dialect_becomes_the_same_run(sample: Sample) -> None:
    collector = Collector()

    end = await offer(collector, sample.dialect, *sample.chunks.splitlines(keepends=True))

    last = collector.payloads[-1]
    assert (collector.text, end.reason, last["kind"]) == (sample.text, EndReason.COMPLETE, "run_end")
    assert last["bytes"] == len(sample.text.encode())
    assert last["reasoning"]["bytes"] == len(sample.reasoning.encode())
    assert ("tool" in collector.kinds) is (sample.dialect is not DialectName.TEXT)


async def test_input_that_breaks_off_ends_the_run_as_incomplete() -> None:
    collector = Collector()

    end = await offer(collector, DialectName.TEXT, b"a\xf0\x9f", InterruptedError(4, "stopped"))

    assert (collector.text, end.reason, end.problem) == (
        "a\ufffd",
        EndReason.INCOMPLETE,
        "the input broke off: stopped",
    )
    assert collector.payloads[-1]["reason"] == "incomplete"


@pytest.mark.parametrize(
    ("last", "reason"),
    [(b'{"choices":[{"finish_reason":"stop"}]}\n', EndReason.COMPLETE), (b"\n", EndReason.INCOMPLETE)],
)
async def test_the_providers_word_stands_when_the_connection_breaks_after_it(last: bytes, reason: EndReason) -> None:
    first = b'{"choices":[{"delta":{"content":"a"}}]}\n'

    end = await offer(Collector(), DialectName.OPENAI, first, last, ConnectionResetError(104, "reset"))

    assert end.reason is reason


async def test_a_failed_stream_is_delivered_as_far_as_it_was_good() -> None:
    collector = Collector()

    end = await offer(collector, DialectName.OPENAI, b'{"choices":[{"delta":{"content":"a"}}]}\nbad\n', b"never read")

    assert (collector.text, end.problem) == ("a", "line 2 is not JSON")
    assert collector.payloads[-1]["reason"] == "failed"


async def test_what_is_too_large_to_send_fails_the_run() -> None:
    collector = Collector(max_bytes=500)
    line = b'{"choices":[{"delta":{"tool_calls":["%s"]}, "finish_reason":"stop"}]}\n' % (b"x" * 600)

    end = await offer(collector, DialectName.OPENAI, line)

    assert (end.reason, end.problem) == (EndReason.FAILED, "too large")
    assert collector.kinds == ["run_start", "run_end"]


async def test_a_publisher_that_fails_stops_the_reading() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"a"
            await asyncio.sleep(0)

    publisher = Publisher(["http://127.0.0.1:1"], "s", settings=PublisherSettings(give_up_seconds=0))
    with pytest.raises(PublishError, match="no gateway"):
        await publish_run(publisher, endless(), open_dialect(DialectName.TEXT), RunScript("r"))


async def test_a_pace_spreads_pieces_and_does_not_catch_up_in_a_burst() -> None:
    now = [0.0]
    pace = Pace(100, clock=lambda: now[0])
    loop = asyncio.get_running_loop()

    began = loop.time()
    for _ in range(3):
        await pace.wait()
    assert pace._next_at == pytest.approx(0.03)
    now[0] = 5.0
    await pace.wait()

    assert pace._next_at == pytest.approx(5.01)
    assert loop.time() - began < 1
