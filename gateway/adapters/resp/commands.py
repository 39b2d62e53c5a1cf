"""A command as bytes. Pure."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import hiredis

Argument: TypeAlias = bytes | str | int | float

# Its stub names a tuple of exactly one item.
pack: Final = cast("Callable[[tuple[Argument, ...]], bytes]", cast("Any", hiredis.pack_command))
"""The whole command; text is sent as UTF-8."""

__all__ = ["Argument", "pack"]
