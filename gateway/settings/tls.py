"""TLS on the gateway's own listeners."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from gateway.settings.topic import Topic


class TlsSettings(Topic):
    """For a gateway that clients reach without a proxy that ends TLS (docs/tls.md). Without files: plain HTTP."""

    certificate_file: Path | None = None
    """PEM: the certificate first, then what its authority asks to send along. Read again when it changes; a pair that
    cannot be served leaves the one before in force."""
    key_file: Path | None = None
    """PEM, without a password: a gateway starts with nobody there to type it."""
    admin: bool = False
    """The admin listener as well, with the same certificate. Probes and Prometheus must then ask by https."""
    minimum_version: Literal["1.2", "1.3"] = "1.2"
    """1.2 for clients of before 2019; what is older is broken."""
    poll_seconds: float = Field(2.0, ge=0.05, le=60)
    """How often the files are looked at; a change is taken at the second look that sees it, so never in the middle of a
    write."""
    handshake_timeout_seconds: float = Field(10, gt=0, le=60)
    """A phone in a poor network needs some seconds for its two round trips; who says nothing needs none of ours."""
    max_handshakes: int = Field(512, ge=1, le=65_536)
    """Under way at once, some 40 KiB each; who has said nothing yet is not counted. Beyond it the oldest makes room
    when it is overdue, else the new one is closed."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file go together: set both, or none for plain HTTP")
        if self.admin and not self.is_on:
            raise ValueError("admin asks for TLS on the admin listener: set certificate_file and key_file")
        return self

    @property
    def is_on(self) -> bool:
        return self.certificate_file is not None


__all__ = ["TlsSettings"]
