"""The secrets that requests to receivers are signed with, from settings or files. Read once, before all else."""

from collections.abc import Iterable, Mapping

from gateway.domain.operator_error import OperatorError
from gateway.settings import Receiver
from gateway.settings.webhooks import check_webhook_secret


def signing_secrets(receivers: Iterable[Receiver]) -> Mapping[str, bytes]:
    """By the receiver's name. OperatorError naming the file that cannot be used; never its content."""
    return {receiver.name: _secret(receiver).encode() for receiver in receivers}


def _secret(receiver: Receiver) -> str:
    file = receiver.secret_file
    if file is None:
        # Settings have exactly one of the two.
        return receiver.secret.get_secret_value() if receiver.secret else ""
    try:
        text = file.read_text(encoding="utf-8").strip()
        check_webhook_secret(receiver.name, text)
    except OSError as exc:
        raise OperatorError(f"webhook {receiver.name!r}: {file} cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise OperatorError(f"webhook {receiver.name!r}: {file} is not UTF-8 text") from None
    except ValueError as exc:
        raise OperatorError(f"{exc}; it is read from {file}") from None
    return text


__all__ = ["signing_secrets"]
