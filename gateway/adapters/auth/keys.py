"""Keys that tokens may be signed with, read and prepared once. A key has one algorithm, whatever a token says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from gateway.domain.operator_error import OperatorError
from gateway.settings import AuthSettings, KeySettings
from gateway.settings.auth import check_secret

DEV_KID = "dev"
MIN_RSA_BITS = 2048
"""RFC 7518, 3.3."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    kid: str
    algorithm: str
    material: Any = field(repr=False)
    """Secret bytes, or a public key object."""


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Keys by their `kid`."""

    keys: Mapping[str, VerificationKey]

    def find(self, kid: str | None) -> VerificationKey | None:
        """A token without a `kid` is for the only key, when there is only one."""
        if kid is None:
            return next(iter(self.keys.values())) if len(self.keys) == 1 else None
        return self.keys.get(kid)


def load_key_ring(settings: AuthSettings) -> KeyRing:
    """OperatorError naming the key that cannot be used; never its content."""
    keys = {key.kid: _load(key) for key in settings.keys}
    if settings.dev_secret_file is not None:
        secret = _read(DEV_KID, settings.dev_secret_file)
        keys[DEV_KID] = VerificationKey(DEV_KID, "HS256", _secret(DEV_KID, secret))
    if not keys:
        raise OperatorError(
            "auth.mode is `jwt` but there is no key: set auth.keys or auth.dev_secret_file, or use --embedded, "
            "or --auth none on loopback"
        )
    return KeyRing(keys)


def _load(key: KeySettings) -> VerificationKey:
    if key.file is not None:
        text = _read(key.kid, key.file)
    elif key.secret is not None:
        text = key.secret.get_secret_value()
    else:
        text = key.public_key or ""
    material = _secret(key.kid, text) if key.is_symmetric else _public_key(key.kid, key.algorithm, text)
    return VerificationKey(key.kid, key.algorithm, material)


def _read(kid: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise OperatorError(f"auth key {kid!r}: {file} cannot be read: {reason}") from None


def _secret(kid: str, text: str) -> bytes:
    try:
        check_secret(kid, text)
    except ValueError as exc:
        raise OperatorError(f"auth: {exc}") from None
    return text.encode()


def _public_key(kid: str, algorithm: str, pem: str) -> Any:
    if "PRIVATE KEY" in pem:
        raise OperatorError(f"auth key {kid!r}: this is a private key; the gateway needs the public one only")
    try:
        key = load_pem_public_key(pem.encode())
    except ValueError:
        raise OperatorError(f"auth key {kid!r}: this is no public key in PEM form") from None
    fits = {
        "RS256": isinstance(key, RSAPublicKey) and key.key_size >= MIN_RSA_BITS,
        "ES256": isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1),
        "EdDSA": isinstance(key, Ed25519PublicKey | Ed448PublicKey),
    }
    if not fits[algorithm]:
        needs = {
            "RS256": f"an RSA key of at least {MIN_RSA_BITS} bits",
            "ES256": "a key on curve P-256",
            "EdDSA": "an Ed25519 or Ed448 key",
        }
        raise OperatorError(f"auth key {kid!r}: {algorithm} needs {needs[algorithm]}")
    return key


__all__ = ["DEV_KID", "KeyRing", "VerificationKey", "load_key_ring"]
