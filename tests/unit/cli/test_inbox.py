"""`relayrouter inbox`: what it refuses before it asks a gateway. What it does is tested with a real one."""

from typing import Any

import pytest

from gateway.cli.app import main


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["lag", "0/1-1"], "entries are only for redrive"),
        (["dead", "--ack"], "--ack is only for take and tail"),
        (["take", "--max", "0"], "--max"),
        (["take", "--consumer", ""], "consumer must have 1 to 128 bytes"),
        (["lag", "--url", "nonsense"], "is not a gateway's address"),
        (["push"], "push"),
    ],
)
def test_a_command_line_that_cannot_be_meant_is_refused(words: list[str], problem: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["inbox", *words])

    assert 2 == ended.value.code
    error = capsys.readouterr().err
    assert problem in error
    assert "Traceback" not in error
