"""How many may connect, and when nobody may: rates, limits of one address and one user, watermarks."""

from ipaddress import ip_network
from math import ceil
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from gateway.settings.topic import ByteCount, Topic, Words

_PAIRS = (("new", "new_per_second"), ("resumes", "resumes_per_second"), ("reads", "reads_per_second"))


class AdmissionSettings(Topic):
    """Token buckets and watermarks of one gateway, before any upgrade. A rate of 0 is no limit."""

    new_per_second: float = Field(200, ge=0)
    """Clients that have seen nothing yet. A connect costs 0.4 ms of a core: less than a tenth of it."""
    new_burst: int = Field(400, ge=1)
    """So many at once after a quiet moment: a page that opens for a meeting."""
    resumes_per_second: float = Field(300, ge=0)
    """Clients that come back with a position; new ones never take from it. A tenth of a core, so that who stays is
    served as before while a dead neighbour's clients come; at least `drain.returns_per_second`."""
    resumes_burst: int = Field(300, ge=1)
    """More at once would delay the text of everybody else."""
    reads_per_second: float = Field(1_000, ge=0)
    """History, and long polls that go on where one ended: each costs less than a connect and ends soon."""
    reads_burst: int = Field(2_000, ge=1)
    """A page that opens reads the history of several sessions."""
    address_connections: int = Field(0, ge=0)
    """At once from one address (IPv6: a /64); who comes back may find twice as many, as its last connection may be dead
    and unnoticed. 0, no limit: behind one address may be an office, or, without `server.trusted_proxies`, everybody."""
    address_connects_per_minute: float = Field(0, ge=0)
    """Of one address; attempts with bad credentials count, a read counts a tenth. 0, no limit: as above."""
    address_connects_burst: int = Field(60, ge=1)
    """So many of them at once."""
    user_connections: int = Field(0, ge=0)
    """At once of one user on this gateway; twice as many when it comes back. 0, no limit: some users are services."""
    user_connects_per_minute: float = Field(0, ge=0)
    """Of one user on this gateway; a read counts a tenth. 0, no limit."""
    user_connects_burst: int = Field(60, ge=1)
    """So many of them at once."""
    new_lag_seconds: float = Field(0.5, gt=0)
    """Mean lateness of the event loop over a second from which new clients are refused, until it is half of that."""
    resume_lag_seconds: float = Field(2, gt=0)
    """The same for those that come back: elsewhere they lose less time than here."""
    new_memory_share: float = Field(0.85, gt=0.05, le=1)
    """Of the memory limit, from which new clients are refused, until it is 0.05 less."""
    resume_memory_share: float = Field(0.95, gt=0.05, le=1)
    """The same for those that come back: the kernel kills a process at 1, and all its clients move."""
    memory_limit_bytes: ByteCount = Field(0, ge=0)
    """0: the limit of the container (its control group), and where there is none no watermark. Else the process's own
    memory is compared with this."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        problems = [
            f"{name}_burst {getattr(self, f'{name}_burst')} must be at least {rate} ({getattr(self, rate):g}): clients "
            "are told whole seconds, so those of one second return together"
            for name, rate in _PAIRS
            if getattr(self, f"{name}_burst") < getattr(self, rate)
        ]
        problems += [
            f"new_{what} {getattr(self, f'new_{what}'):g} must be at most resume_{what} "
            f"({getattr(self, f'resume_{what}'):g}): who comes back is refused last"
            for what in ("lag_seconds", "memory_share")
            if getattr(self, f"new_{what}") > getattr(self, f"resume_{what}")
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _check_networks(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        try:
            network = ip_network(word)
        except ValueError as exc:
            raise ValueError(f"{word!r} is no network: write it as `10.0.0.0/8` or `192.0.2.7` ({exc})") from None
        if network.prefixlen == 0:
            raise ValueError(f"{word!r} is everybody: then any client could name any address")
    return words


Networks = Annotated[Words, AfterValidator(_check_networks)]
"""CIDRs, or single addresses; in the environment separated by commas."""


def problem_of_returns(returns_per_second: float, admission: AdmissionSettings) -> str | None:
    """Of a drain that asks clients back faster than one other gateway with the same settings lets them in."""
    limit = admission.resumes_per_second
    if not limit or returns_per_second <= limit:
        return None
    return (
        f"drain.returns_per_second {returns_per_second:g} is above admission.resumes_per_second {limit:g}: "
        f"a drain needs at least {ceil(returns_per_second / limit)} other gateways that share its clients evenly"
    )


__all__ = ["AdmissionSettings", "Networks", "problem_of_returns"]
