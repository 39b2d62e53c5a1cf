"""Watches a certificate's and a key's file (ports.PairSource). Both change together, or nothing is taken."""

from pathlib import Path

from gateway.adapters.config.certificate import BadPair, read_pair
from gateway.adapters.config.file_state import FileState, file_state
from gateway.domain.operator_error import OperatorError
from gateway.ports.certificates import Pair, PairRefused
from gateway.settings.tls import TlsSettings

_States = tuple[FileState | None, FileState | None]


class CertificateWatch:
    """`load` once, then `look` again and again."""

    def __init__(self, certificate_file: Path, key_file: Path, settings: TlsSettings) -> None:
        self._certificate_file = certificate_file
        self._key_file = key_file
        self._minimum_version = settings.minimum_version
        self._judged: _States | None = None
        self._seen: _States | None = None
        self._problem = ""
        """Of what was judged last; it is judged on, for rights that come later change no state."""

    def load(self) -> Pair:
        """Raises OperatorError: a gateway does not start without the certificate that its operator means."""
        self._judged = self._seen = self._states()
        try:
            return self._read()
        except BadPair as exc:
            raise OperatorError(f"tls.certificate_file and tls.key_file cannot be used: {exc}") from None

    def look(self) -> Pair | PairRefused | None:
        """A change is taken when two looks saw the same: who writes one file after the other is not read between."""
        states = self._states()
        is_new, self._seen = states != self._seen, states
        if is_new or (states == self._judged and not self._problem):
            return None
        try:
            found: Pair | PairRefused = self._read()
        except BadPair as exc:
            found = PairRefused(str(exc))
        if self._states() != states:
            return None
        before, self._problem = self._problem, found.problem if isinstance(found, PairRefused) else ""
        self._judged = states
        return None if before and before == self._problem else found

    def _read(self) -> Pair:
        return read_pair(self._certificate_file, self._key_file, self._minimum_version)

    def _states(self) -> _States:
        return file_state(self._certificate_file), file_state(self._key_file)


__all__ = ["CertificateWatch"]
