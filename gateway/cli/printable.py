"""Text of others on a terminal: without what a terminal takes for commands. Pure."""

from typing import Final

_COMMANDS: Final = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)])
for _kept in "\n\t":
    del _COMMANDS[ord(_kept)]


def printable(text: str) -> str:
    """Without C0 and C1 controls and DEL; lines and tabs stay."""
    return text.translate(_COMMANDS)


__all__ = ["printable"]
