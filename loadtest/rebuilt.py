"""A text that came by snapshot, in parts that may overlap. Pure."""

from dataclasses import dataclass


@dataclass(slots=True)
class Rebuilt:
    text: bytes
    applied_until: int = 0
    """Frames that the client had applied by then are in it, or were told before."""
    is_whole: bool = True
    """False: the server said that it is partial, or cut."""

    def add(self, at: int, data: bytes) -> str:
        """What is wrong with this part; empty: nothing. It may overlap with what is there, by the same bytes."""
        if at > len(self.text):
            return f"a part at {at}, the text has {len(self.text)} bytes"
        there = self.text[at : at + len(data)]
        if not data.startswith(there):
            return f"other text at {at} than before"
        self.text += data[len(there) :]
        return ""


__all__ = ["Rebuilt"]
