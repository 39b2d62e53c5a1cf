"""What a listener's certificate says of itself, and when another one may take its place. Pure; seconds since 1970."""

from dataclasses import dataclass
from enum import Enum


class Validity(Enum):
    VALID = "valid"
    NOT_YET = "not yet valid"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The one that is shown, first of its chain."""

    subject: str
    """Its names, or its subject where it has none."""
    serial: str
    not_before_seconds: int
    not_after_seconds: int

    def validity(self, now_seconds: float) -> Validity:
        if now_seconds < self.not_before_seconds:
            return Validity.NOT_YET
        return Validity.VALID if now_seconds <= self.not_after_seconds else Validity.EXPIRED


def reason_to_keep(in_force: Certificate, found: Certificate, now_seconds: float) -> str | None:
    """Why `found` does not take the place of `in_force` now; None: it does.

    One that clients accept never gives way to one that they refuse. When both are refused the new one is taken:
    it is what the operator means.
    """
    validity = found.validity(now_seconds)
    if validity is Validity.VALID or in_force.validity(now_seconds) is not Validity.VALID:
        return None
    return f"the new certificate is {validity.value}, and the one in force is valid"


__all__ = ["Certificate", "Validity", "reason_to_keep"]
