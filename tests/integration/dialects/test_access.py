"""Libraries bring their credentials in the way they are used to, and show a refusal for what it is."""

import aiohttp
import pytest
import pytest_asyncio

from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.dialects.producer import StreamedRun
from tests.integration.dialects.readers import Readers
from tests.integration.dialects.test_reading import events_url
from tests.integration.watched_socket import WITH_TOKENS, token

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIBRARIES = ["openai", "ai-sdk", "ag-ui"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(shared_stage: Stage) -> Gateway:
    gateway = await shared_stage.gateway(shared_stage.server().url, **WITH_TOKENS)
    async with StreamedRun(gateway, "private", "r1", token=token()) as stream:
        await stream.write(b"For you only.")
        await stream.finish()
    return gateway


@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_bearer_token_opens_it(gateway: Gateway, readers: Readers, library: str) -> None:
    answer = await readers.read(library, events_url(gateway.url, "private", library), token=token())

    assert "error" not in answer
    assert answer["text"] == "For you only."


@pytest.mark.parametrize(
    ("claims", "words"),
    [({"exp": 1}, ("401", "credentials")), ({"sessions": ["other"]}, ("404", "not yours", "no such session"))],
    ids=["expired", "not-yours"],
)
@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_refusal_is_the_librarys_error(
    gateway: Gateway, readers: Readers, library: str, claims: dict[str, object], words: tuple[str, ...]
) -> None:
    """At once: it is not tried again."""
    answer = await readers.read(library, events_url(gateway.url, "private", library), token=token(**claims))

    assert any(word in answer["error"] for word in words), answer["error"]
    assert answer["requests"] == 1


async def test_a_ticket_opens_it_for_an_event_source(gateway: Gateway) -> None:
    """Which cannot send a header."""
    headers = {"Authorization": f"Bearer {token()}"}
    async with aiohttp.ClientSession() as http:
        async with http.post(f"{gateway.url}/v1/tickets", json={}, headers=headers) as response:
            ticket = (await response.json())["ticket"]
        url = f"{events_url(gateway.url, 'private', 'openai')}&ticket={ticket}"
        async with http.get(url) as first, http.get(url) as second:
            statuses, text = (first.status, second.status), await first.text()

    assert statuses == (200, 401)
    assert "For you only." in text
