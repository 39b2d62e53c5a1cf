"""Certificates and keys as a test or a measurement needs them, made on the spot: an authority, and what it signs."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
DAY = timedelta(days=1)


def now() -> datetime:
    return datetime.now(UTC)


def pem_of(key: PrivateKey, password: bytes | None = None) -> bytes:
    lock: KeySerializationEncryption = NoEncryption() if password is None else BestAvailableEncryption(password)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)


@dataclass(frozen=True, slots=True)
class Made:
    """A certificate with its chain, and its key; PEM."""

    chain: bytes
    key: bytes
    private_key: PrivateKey
    serial: str

    def write(self, certificate_file: Path, key_file: Path) -> None:
        certificate_file.write_bytes(self.chain)
        key_file.write_bytes(self.key)


class Authority:
    """Signs what is asked for. `root` is what clients trust."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])

    @cached_property
    def root(self) -> bytes:
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        signed = (
            self._builder(self._name, self._key, now() - DAY, now() + 365 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .add_extension(usage, critical=True)
            .sign(self._key, SHA256())
        )
        return signed.public_bytes(Encoding.PEM)

    def sign(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        key: PrivateKey | None = None,
        names: tuple[str, ...] = ("localhost", "127.0.0.1"),
    ) -> Made:
        """For a server, valid from an hour ago for 90 days unless told otherwise; the root goes along in the chain."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test gateway")])
        builder = self._builder(subject, key, since or now() - DAY / 24, until or now() + 90 * DAY)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        signed = builder.add_extension(issuer, critical=False).sign(self._key, SHA256())
        chain = signed.public_bytes(Encoding.PEM) + self.root
        return Made(chain, pem_of(key), key, f"{signed.serial_number:x}")

    def _builder(
        self, subject: x509.Name, key: PrivateKey, since: datetime, until: datetime
    ) -> x509.CertificateBuilder:
        return x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=since,
            not_valid_after=until,
        )


class SecretVolume:
    """A folder as the kubelet keeps it for a mounted Secret: files are links through `..data`, which is swapped."""

    def __init__(self, folder: Path, made: Made) -> None:
        self._folder = folder
        self._versions = 0
        folder.mkdir(parents=True)
        self.put(made)
        for name in ("tls.crt", "tls.key"):
            (folder / name).symlink_to(f"..data/{name}")

    @property
    def certificate_file(self) -> Path:
        return self._folder / "tls.crt"

    @property
    def key_file(self) -> Path:
        return self._folder / "tls.key"

    def put(self, made: Made) -> None:
        """As the kubelet: a folder beside, then a link renamed over."""
        self._versions += 1
        version = self._folder / f"..{self._versions}"
        version.mkdir()
        made.write(version / "tls.crt", version / "tls.key")
        fresh = self._folder / "..data_tmp"
        fresh.symlink_to(version.name)
        fresh.replace(self._folder / "..data")


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


__all__ = ["DAY", "Authority", "Made", "SecretVolume", "now", "pem_of"]
