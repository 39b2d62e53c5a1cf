"""Each request of a library is a client of its own, whose id is one."""

import pytest

from gateway.adapters.http.sse_prompts import _client_of
from gateway.domain.wire.ids import check_id


@pytest.mark.parametrize("run", ["r", "r" * 124, "r" * 125, "r" * 128, "é" * 62, "é" * 64])
def test_the_client_of_a_run_is_a_good_id(run: str) -> None:
    assert check_id(_client_of(run), "client").startswith("ask-")


def test_long_runs_that_begin_alike_have_clients_of_their_own() -> None:
    clients = {_client_of("r" * 127 + end) for end in "ab"}

    assert len(clients) == 2
