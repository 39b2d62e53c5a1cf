"""The HS256 secret of key `dev`: made once, kept in a file that only its owner reads, shared by `serve` and `token`."""

import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gateway.domain.operator_error import OperatorError
from gateway.settings.auth import check_secret

DEV_KID = "dev"
_FILE_NAME = "dev-secret"


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """Where `--embedded` keeps its data when nobody says otherwise."""
    if environ.get("RR_DATA_DIR"):
        return Path(environ["RR_DATA_DIR"])
    base = environ.get("XDG_DATA_HOME") or Path(environ.get("HOME") or ".") / ".local" / "share"
    return Path(base) / "relayrouter"


def dev_secret_file(data_dir: Path) -> Path:
    return data_dir / _FILE_NAME


def ensure_dev_secret(file: Path) -> str:
    """The secret in `file`, which is made (mode 0600) when there is none. Safe when two processes start at once.

    OperatorError: it cannot be made or read, or holds what is no secret.
    """
    try:
        if not file.exists():
            _make(file)
        secret = file.read_text(encoding="utf-8").strip()
        check_secret(DEV_KID, secret)
    except OSError as exc:
        raise OperatorError(f"the development secret {file} cannot be used: {exc.strerror}") from exc
    except ValueError as exc:
        raise OperatorError(f"{file}: {exc}; remove the file to get a new one") from exc
    return secret


def _make(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix=".dev-secret-")  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(secrets.token_hex(32) + "\n")
        try:
            os.link(draft, file)  # whole or not at all, and never over another one's
        except FileExistsError:
            return
    finally:
        Path(draft).unlink()


__all__ = ["DEV_KID", "default_data_dir", "dev_secret_file", "ensure_dev_secret"]
