"""Reads one line of JSON into a typed shape: fast when it is as it should be, exact about what is wrong when not.

The fast decoder refuses bytes that are no UTF-8 and escaped lone surrogates, both of which providers do send; such a
line is read again the slow way, with replacements.
"""

import json
from typing import Any, NoReturn, TypeVar

import msgspec

from gateway.domain.streams.pieces import count_replacements
from gateway.domain.wire.payload import mend_surrogates

MAX_QUOTED_BYTES = 300
"""Of a provider's own words: enough for a person, and for the saved state."""
_MAX_REASON_BYTES = 64

_T = TypeVar("_T")


class BadLine(Exception):
    """What is wrong with a line, without its number."""


class ProviderError(Exception):
    """The provider reported an error in its stream (failure catalogue L07); the text says so, without a line number."""


def decode_carefully(payload: bytes, decoder: "msgspec.json.Decoder[_T]") -> tuple[_T, int]:
    """(the line, how many U+FFFD were put into its bytes). Its strings may hold surrogates. Raises BadLine."""
    text = payload.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise BadLine("is not JSON") from None
    if not isinstance(value, dict):
        raise BadLine("is not a JSON object")
    try:
        line: _T = msgspec.convert(value, decoder.type)
    except msgspec.ValidationError as exc:
        raise BadLine(f"has an unexpected shape: {exc}") from None
    return line, count_replacements(payload, text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def text_in(value: Any, name: str) -> str:
    """A text that may be missing. Raises BadLine for anything else."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    raise BadLine(f"has a {name} that is no text")


def reason_in(value: Any, name: str) -> str | None:
    """A finish reason, short and printable; None when it is missing or empty. Raises BadLine when it is no text."""
    return quoted(text, _MAX_REASON_BYTES) if (text := text_in(value, name)) else None


def quoted(value: Any, max_bytes: int = MAX_QUOTED_BYTES) -> str:
    """Somebody else's words for our own sentence: printable, one line, not long."""
    words = "".join(char if char.isprintable() else " " for char in mend_surrogates(str(value))[:max_bytes])
    return words.encode()[:max_bytes].decode("utf-8", "ignore")


def provider_error(error: Any) -> ProviderError:
    """From a string, or an object with a message, a code or a type."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or error.get("type")
    words = quoted(error) if isinstance(error, str | int) else "no reason given"
    return ProviderError(f"reports an error: {words}")


__all__ = [
    "MAX_QUOTED_BYTES",
    "BadLine",
    "ProviderError",
    "decode_carefully",
    "provider_error",
    "quoted",
    "reason_in",
    "text_in",
]
