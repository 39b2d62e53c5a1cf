"""Puts together TLS on the gateway's own listeners, where the settings ask for it. Called by compose."""

import time

from gateway.adapters.http.tls_handshakes import Handshakes
from gateway.core.certificates import CertificateDesk
from gateway.core.tasks import TaskOwner
from gateway.domain.certificates import Certificate
from gateway.domain.measures import Measures
from gateway.settings.tls import TlsSettings


class TlsSide:
    """One per gateway. Raises OperatorError when the certificate or its key cannot be used."""

    def __init__(self, settings: TlsSettings, measures: Measures) -> None:
        self._desk = _desk(settings, measures)
        desk = self._desk
        self.public = None if desk is None else Handshakes(lambda: desk.context, settings, measures)
        """None: plain HTTP."""
        # Places of its own: strangers who fill those of the public listener must not turn probes away.
        self.admin = (
            None if desk is None or not settings.admin else Handshakes(lambda: desk.context, settings, measures)
        )

    def start(self, owner: TaskOwner) -> None:
        if self._desk is not None:
            owner.forever("certificates", self._desk.run())

    @property
    def certificate(self) -> Certificate | None:
        return None if self._desk is None else self._desk.certificate

    @property
    def is_refused(self) -> bool:
        """What is in the files now is not in force."""
        return self._desk is not None and bool(self._desk.problem)


def _desk(settings: TlsSettings, measures: Measures) -> CertificateDesk | None:
    if settings.certificate_file is None or settings.key_file is None:
        return None
    # It loads `cryptography`, which a gateway without TLS may never need.
    from gateway.adapters.config.certificate_watch import CertificateWatch  # noqa: PLC0415

    watch = CertificateWatch(settings.certificate_file, settings.key_file, settings)
    return CertificateDesk(watch.load(), watch, measures, time.time, settings.poll_seconds)


__all__ = ["TlsSide"]
