"""Where a receiver's secret comes from, and that a file which cannot be used is named before anything is served."""

from pathlib import Path
from typing import Any

import pytest

from gateway.adapters.webhook import signing_secrets
from gateway.domain.operator_error import OperatorError
from gateway.settings import Receiver

SECRET = "0123456789abcdef" * 2


def receiver(**fields: Any) -> Receiver:
    return Receiver(name="hook", url="https://agents.example/hook", **fields)


def test_a_secret_is_text_or_a_file(tmp_path: Path) -> None:
    """The line break that editors leave at the end is not part of it."""
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")

    wanted = {"hook": SECRET.encode()}
    assert signing_secrets([receiver(secret=SECRET)]) == wanted
    assert signing_secrets([receiver(secret_file=file)]) == wanted


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file"),
        (b"\xff" * 40, "is not UTF-8"),
        (SECRET[1:].encode(), "at least 32 bytes"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(content: bytes | None, problem: str, tmp_path: Path) -> None:
    """With what is wrong, and without what is in it."""
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(OperatorError) as refused:
        signing_secrets([receiver(secret_file=file)])

    assert problem in str(refused.value)
    assert str(file) in str(refused.value)
    assert SECRET[1:] not in str(refused.value)
