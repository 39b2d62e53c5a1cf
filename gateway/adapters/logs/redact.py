"""Takes secrets out of log events, whoever put them there (U02): by the name of a field, and by the look of a text."""

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

HIDDEN = "***"
_MAX_DEPTH = 6

_SECRET_NAME = re.compile(
    r"(^|_)(token|ticket|secret|password|passwd|authorization|cookie|credentials?|bearer|api_key)s?($|_)", re.IGNORECASE
)
_SECRET_TEXT = re.compile(
    r"eyJ[\w-]{4,}\.[\w-]*\.?[\w-]*"  # a JWT
    r"|(?<=bearer\.)[\w.~+/=-]+"  # the subprotocol item
    r"|(?<=bearer )[\w.~+/=-]+"  # the header
    r"|(?<=token=)[^&\s\"']+"
    r"|(?<=ticket=)[^&\s\"']+"
    r"|(?<=://)[^/@\s]*:[^/@\s]*(?=@)",  # user and password in a URL
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"token_id"})


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor; the last before rendering, so that it sees rendered exceptions as well."""
    for name in event:
        event[name] = HIDDEN if _is_secret(name) else _clean(event[name], 1)
    return event


def redact_text(text: str) -> str:
    return _SECRET_TEXT.sub(HIDDEN, text)


def _is_secret(name: object) -> bool:
    return isinstance(name, str) and name not in _NOT_SECRET and _SECRET_NAME.search(name) is not None


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes):
        return redact_text(value.decode(errors="replace"))
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth > _MAX_DEPTH:
        return HIDDEN
    if isinstance(value, Mapping):
        return {name: HIDDEN if _is_secret(name) else _clean(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item, depth + 1) for item in value]
    return redact_text(str(value))


__all__ = ["HIDDEN", "redact", "redact_text"]
