"""Judges a certificate chain and its key, and makes what a listener serves of them.

Must never repeat anything of a file in an error, nor ask a terminal for a password. Imported only where TLS is on: it
loads `cryptography`, which PyJWT[crypto] brings.
"""

import hashlib
import ssl
from pathlib import Path
from typing import Final, Literal

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from gateway.domain.certificates import Certificate
from gateway.ports.certificates import Pair

MAX_BYTES: Final = 256 * 1024
"""Of one file. A chain of ten certificates has 20 KiB."""
_ALPN: Final = ["http/1.1"]
_NAMES_SHOWN: Final = 5
_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_ODD: Final = (UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
"""What is wrong with a certificate and is no ValueError to `cryptography`."""


class BadPair(Exception):
    """The text says what is wrong with which file."""


def read_pair(certificate_file: Path, key_file: Path, minimum_version: Literal["1.2", "1.3"]) -> Pair:
    """Whole, or BadPair; blocks. Who calls sees to it that the files do not change meanwhile."""
    chain, key = _read(certificate_file), _read(key_file)
    certificate = judge(chain, key, str(certificate_file), str(key_file))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = _VERSIONS[minimum_version]
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(_ALPN)
    try:
        # A password for OpenSSL, so that it never asks a terminal for one.
        context.load_cert_chain(certificate_file, key_file, password="")
    except OSError as exc:  # an SSLError is one
        reason = getattr(exc, "reason", None) or exc.strerror or type(exc).__name__
        raise BadPair(f"{certificate_file} with {key_file} is refused by OpenSSL: {reason}") from None
    return Pair(certificate, context, hashlib.sha256(b"%d:%b%b" % (len(chain), chain, key)).digest())


def judge(chain: bytes, key: bytes, chain_name: str, key_name: str) -> Certificate:
    """What the first certificate says. Raises BadPair, which calls the files by these names."""
    try:
        certificates = x509.load_pem_x509_certificates(chain)
        certificate = certificates[0]
        found = Certificate(
            _subject(certificate),
            f"{certificate.serial_number:x}",
            int(certificate.not_valid_before_utc.timestamp()),
            int(certificate.not_valid_after_utc.timestamp()),
        )
        public_keys = [_public_bytes(one.public_key()) for one in certificates]
    except (ValueError, TypeError, *_ODD):
        raise BadPair(f"{chain_name} is no certificate chain in PEM (-----BEGIN CERTIFICATE-----)") from None
    try:
        own = _public_bytes(load_pem_private_key(key, None).public_key())
    except TypeError:
        raise BadPair(f"{key_name} has a password; write it without one (`openssl pkey -in FILE -out PLAIN`)") from None
    except (ValueError, UnsupportedAlgorithm):
        raise BadPair(f"{key_name} is no private key in PEM (-----BEGIN PRIVATE KEY-----)") from None
    if own != public_keys[0]:
        if own in public_keys:
            raise BadPair(f"{chain_name} does not begin with the certificate of {key_name}: put that one first")
        raise BadPair(f"{key_name} is not the key of the certificate in {chain_name}")
    return found


def _read(path: Path) -> bytes:
    if path.is_fifo():  # opening it would wait for a writer
        raise BadPair(f"{path} is a pipe: it is read again and again, so it must be a file")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as exc:
        raise BadPair(f"{path} cannot be read: {exc.strerror or type(exc).__name__}") from None
    if len(data) > MAX_BYTES:
        raise BadPair(f"{path} is larger than {MAX_BYTES} bytes")
    return data


def _subject(certificate: x509.Certificate) -> str:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        shown = [str(name.value) for name in names if isinstance(name, x509.DNSName | x509.IPAddress)]
    except x509.ExtensionNotFound:
        shown = []
    return ", ".join(shown[:_NAMES_SHOWN]) or certificate.subject.rfc4514_string()


def _public_bytes(public_key: object) -> bytes:
    """Of keys that a certificate can have; TypeError for one that cannot be written down."""
    write = getattr(public_key, "public_bytes", None)
    if write is None:
        raise TypeError
    data: bytes = write(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return data


__all__ = ["MAX_BYTES", "BadPair", "judge", "read_pair"]
