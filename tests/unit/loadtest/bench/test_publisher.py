"""The publisher's templates say what the gateway's own store would."""

import hiredis
import pytest

from gateway.adapters.redis_store import StoreScripts
from gateway.settings import Settings
from loadtest.bench.publisher import BODY_MARK, NUMBER_MARK, TEXT_BYTES, Appends, Publishes, text


@pytest.fixture
def scripts() -> StoreScripts:
    settings = Settings()
    return StoreScripts.load(settings.retention, settings.limits, settings.routes, settings.redis, settings.runs)


def test_a_session_s_appends_are_numbered_from_two_on(scripts: StoreScripts) -> None:
    """Number 1 was appended through the store."""
    body = text(7)
    appends = Appends([scripts.append.pack(("key",), (b"before", NUMBER_MARK, b"between", b"<" + BODY_MARK + b">"))])

    commands = [appends.command(0, body) for _ in range(12)]

    assert commands == [
        scripts.append.pack(("key",), (b"before", number, b"between", b"<" + body + b">")) for number in range(2, 14)
    ]


def test_the_ordinary_publish_is_a_whole_command() -> None:
    body = text(7)

    command = Publishes(3, "bench").command(2, body)

    data = b'{"type":"text","payload":{"kind":"data","text":"' + body + b'"}}'
    assert command == hiredis.pack_command((b"PUBLISH", b"session:bench-2", data))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 99_999_999])
def test_every_text_has_the_same_size(number: int) -> None:
    assert len(text(number)) == TEXT_BYTES
