"""How long runs live and how much of their text is kept for those who come back (design.md 4 and 6)."""

from typing import Self

from pydantic import Field, model_validator

from gateway.settings.topic import ByteCount, Topic

_MIB = 1024**2


class RunSettings(Topic):
    """Runs of a session, in Redis."""

    lease_seconds: float = Field(30, ge=1)
    """A producer that is silent for so long has left its run; an open ingest request renews it by itself."""
    push_lease_seconds: float = Field(600, ge=1)
    """A run that comes by single pushes has nobody who renews: tools and people may pause for minutes."""
    text_bytes: ByteCount = Field(_MIB, ge=1_024)
    """Kept of one text: some hundred pages; what comes after it is delivered, but no snapshot has it (`partial`)."""
    session_text_bytes: ByteCount = Field(4 * _MIB, ge=1_024)
    """Kept of all texts of a session together: bounds Redis memory as the log's limit does."""
    retained: int = Field(16, ge=1, le=64)
    """Runs of a session: the last answers that a reader comes back to. Ended ones go first."""
    ended_seconds: float = Field(300, ge=5, le=86_400)
    """An ended run can be read as long as the log of it: a phone in a tunnel, a laptop that changes rooms."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.text_bytes > self.session_text_bytes:
            raise ValueError(
                f"text_bytes {self.text_bytes} is above session_text_bytes {self.session_text_bytes}: "
                "no text could get so long"
            )
        return self


__all__ = ["RunSettings"]
