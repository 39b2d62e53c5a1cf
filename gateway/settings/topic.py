"""The base of every settings topic, and the value types that operators write in more than one way."""

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

_SIZE = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB)?")
_UNIT_BYTES = {None: 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


class Topic(BaseModel):
    """Frozen, closed: a key that is not here is an error. Attribute docstrings become the configuration table."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True, allow_inf_nan=False
    )


def _parse_bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError("write a number of bytes, or one with a unit like `64 KiB` or `1 MiB`")
    return int(match[1]) * _UNIT_BYTES[match[2]]


def _parse_words(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return tuple(word for part in value.split(",") if (word := part.strip()))


ByteCount = Annotated[int, BeforeValidator(_parse_bytes)]
"""A number of bytes; also written `64 KiB`."""

Words = Annotated[tuple[str, ...], BeforeValidator(_parse_words)]
"""A list of words; in the environment separated by commas."""
