"""Which certificate is in force: looked at again and again, swapped whole, and one that clients refuse never taken for
one that they accept. Must never end the gateway because of what is in a file.
"""

import asyncio
import ssl
from collections.abc import Callable

import structlog

from gateway.domain.certificates import Certificate, Validity, reason_to_keep
from gateway.domain.measures import Measures
from gateway.ports.certificates import Pair, PairRefused, PairSource

log = structlog.get_logger()


class CertificateDesk:
    """One per gateway with TLS."""

    def __init__(
        self, pair: Pair, source: PairSource, measures: Measures, wall_clock: Callable[[], float], poll_seconds: float
    ) -> None:
        """`pair` is in force from the start, whatever its dates: clients say better than a restart what is wrong."""
        self.problem = ""
        """Why what is in the files now is not in force."""
        self._pair = pair
        self._source = source
        self._measures = measures
        self._now = wall_clock
        self._poll_seconds = poll_seconds
        self._next: Pair | None = None
        """Whole, and waiting for its time."""
        self._tell("certificate_in_force")

    @property
    def context(self) -> ssl.SSLContext:
        """For the next handshake."""
        return self._pair.context

    @property
    def certificate(self) -> Certificate:
        return self._pair.certificate

    async def run(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(self._poll_seconds)
            self.take(await asyncio.to_thread(self._source.look))

    def take(self, found: Pair | PairRefused | None) -> None:
        """What a look told."""
        if isinstance(found, PairRefused):
            self._next = None
            self._refuse(found.problem)
        elif found is not None:
            self._next = found
        if self._next is None:
            return
        reason = reason_to_keep(self.certificate, self._next.certificate, self._now())
        if reason is not None:
            self._refuse(reason)
            return
        self._swap(self._next)

    def _swap(self, pair: Pair) -> None:
        self._next, self.problem = None, ""
        if pair.digest == self._pair.digest:
            return
        self._pair = pair
        self._measures.certificate_reloads["taken"] += 1
        self._tell("certificate_in_force")

    def _refuse(self, problem: str) -> None:
        """Once for each problem."""
        if problem == self.problem:
            return
        self.problem = problem
        self._measures.certificate_reloads["refused"] += 1
        log.warning("certificate_refused", problem=problem, in_force=self.certificate.serial)

    def _tell(self, event: str) -> None:
        certificate = self.certificate
        validity = certificate.validity(self._now())
        days_left = round((certificate.not_after_seconds - self._now()) / 86_400, 1)
        tell = log.info if validity is Validity.VALID else log.warning
        tell(event, subject=certificate.subject, serial=certificate.serial, state=validity.value, days_left=days_left)


__all__ = ["CertificateDesk"]
