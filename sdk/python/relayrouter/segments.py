"""Whole segments (requirement A11): adjacent deltas of a run joined, their text unchanged. Pure."""

import re
from dataclasses import replace

from relayrouter.messages import Frame

MAX_JOINED_BYTES = 64 * 1024
_SENTENCE_END = re.compile(r"[.!?…](?=\s|$)|[。！？｡]|\n")
_JOINABLE_FIELDS = frozenset(("kind", "run", "text", "at"))


def ends_sentence(frame: Frame) -> bool:
    """A sentence ends somewhere in it."""
    return _SENTENCE_END.search(frame.text) is not None


def can_join(first: Frame, second: Frame) -> bool:
    """`second` goes on where `first` ends, and says nothing else."""
    return (
        first.kind == second.kind == "delta"
        and first.run == second.run
        and not (first.payload.keys() | second.payload.keys()) - _JOINABLE_FIELDS
        and first.seq is not None
        and second.first_seq == first.seq + 1
        and first.size_bytes + second.size_bytes <= MAX_JOINED_BYTES
        and (first.at is None) == (second.at is None)
        and (first.at is None or second.at == first.at + len(first.text.encode("utf-8", "surrogatepass")))
    )


def join(first: Frame, second: Frame) -> Frame:
    """Only where `can_join`."""
    return replace(
        second,
        first_seq=first.first_seq,
        payload=first.payload | {"text": first.text + second.text},
        size_bytes=first.size_bytes + second.size_bytes,
    )


__all__ = ["MAX_JOINED_BYTES", "can_join", "ends_sentence", "join"]
