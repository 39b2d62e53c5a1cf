"""`python -m tools.dashboards.ask` where there is no Prometheus."""

import socket
import sys

import pytest

from tools.dashboards.ask import main


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}", "127.0.0.1:{port}"])
def test_one_line_says_that_nobody_answers(
    address: str, closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong address is the operator's everyday mistake: the URL and the reason, and no traceback."""
    url = address.format(port=closed_port)
    monkeypatch.setattr(sys, "argv", ["ask", url])
    assert main() == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: {url} does not answer as a Prometheus does: ")
    assert told.count("\n") == 1
