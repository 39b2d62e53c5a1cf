"""The development secret: made once, private, the same for whoever asks."""

from pathlib import Path

import pytest

from gateway.app.dev_secret import default_data_dir, dev_secret_file, ensure_dev_secret
from gateway.domain.operator_error import OperatorError


def test_it_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    file = dev_secret_file(tmp_path / "new" / "dir")

    secret = ensure_dev_secret(file)

    assert ensure_dev_secret(file) == secret
    assert len(secret) == 64
    assert file.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_what_is_no_secret_is_refused_without_showing_it(tmp_path: Path) -> None:
    file = tmp_path / "dev-secret"
    file.write_text("tooshort")

    with pytest.raises(OperatorError, match="remove the file") as caught:
        ensure_dev_secret(file)

    assert "tooshort" not in str(caught.value)


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OperatorError, match="cannot be used"):
        ensure_dev_secret(tmp_path / "file" / "dev-secret")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"RR_DATA_DIR": "/d", "XDG_DATA_HOME": "/x", "HOME": "/h"}, "/d"),
        ({"XDG_DATA_HOME": "/x", "HOME": "/h"}, "/x/relayrouter"),
        ({"HOME": "/h"}, "/h/.local/share/relayrouter"),
    ],
)
def test_the_data_directory_follows_the_environment(environ: dict[str, str], expected: str) -> None:
    assert default_data_dir(environ) == Path(expected)
