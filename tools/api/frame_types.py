"""What the types of frames are made of. Fields may be added to the wire; here an unknown one is an error."""

from typing import Annotated

from msgspec import Meta, Struct

Seq = Annotated[int, Meta(ge=1, le=2**53 - 1, description="Position in the session's log, from 1, +1 each.")]
Ms = Annotated[int, Meta(ge=0, description="Milliseconds.")]
At = Annotated[int, Meta(ge=0, description="UTF-8 byte offset of this text in its run's text (or thinking).")]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
RunName = Annotated[str, Meta(min_length=1, description="The run's id: one generation inside the session.")]
Position = Annotated[str, Meta(description="`<epoch>.<fork>.<seq>`; opaque to applications.")]


class Frame(Struct, forbid_unknown_fields=True, tag_field="kind", omit_defaults=True):
    """Base of all payloads."""


class Seen(Struct, forbid_unknown_fields=True):
    """What is on screen: the last message applied, and the bytes of the run's text."""

    seq: int
    at: At


__all__ = ["At", "Frame", "Ms", "Position", "RunName", "Seen", "Seq", "Sha256"]
