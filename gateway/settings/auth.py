"""Who may come in: token keys, claim names, revocation and expiry times. The adapter reads key files."""

from collections import Counter
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from gateway.settings.topic import Topic

MIN_SECRET_BYTES = 32
"""RFC 7518, 3.2: an HS256 key is at least as long as the hash."""

_PEM_MARK = "-----BEGIN"


class KeySettings(Topic):
    """One verification key. Exactly one of secret, public_key and file is given."""

    kid: str = Field(min_length=1, max_length=128)
    """Tokens name their key by it; two keys with two names make a rotation."""
    algorithm: Literal["HS256", "RS256", "ES256", "EdDSA"]
    """The key decides the algorithm; what a token claims about it is only compared."""
    secret: SecretStr | None = None
    """HS256: at least 32 bytes."""
    public_key: str | None = None
    """RS256, ES256, EdDSA: the public key as PEM text."""
    file: Path | None = None
    """Instead of the text: a file with the secret or the PEM."""

    @property
    def is_symmetric(self) -> bool:
        return self.algorithm == "HS256"

    @model_validator(mode="after")
    def _check_material(self) -> Self:
        given = [name for name in ("secret", "public_key", "file") if getattr(self, name) is not None]
        wanted = "secret" if self.is_symmetric else "public_key"
        if len(given) != 1 or given[0] not in (wanted, "file"):
            raise ValueError(
                f"key {self.kid!r} ({self.algorithm}) needs exactly one of {wanted} and file, has {given or 'none'}"
            )
        if self.secret is not None:
            check_secret(self.kid, self.secret.get_secret_value())
        if self.public_key is not None and _PEM_MARK not in self.public_key:
            raise ValueError(f"key {self.kid!r}: public_key is not PEM text (`-----BEGIN PUBLIC KEY-----` ...)")
        return self


def check_secret(kid: str, secret: str) -> None:
    """ValueError unless `secret` may serve HS256: long enough, and no PEM text."""
    if _PEM_MARK in secret:
        raise ValueError(
            f"key {kid!r}: an HS256 secret must not be a PEM key: whoever has the public key could sign tokens"
        )
    if len(secret.encode()) < MIN_SECRET_BYTES:
        raise ValueError(
            f"key {kid!r}: an HS256 secret needs at least {MIN_SECRET_BYTES} bytes (`openssl rand -hex 32`)"
        )


class AuthSettings(Topic):
    """Tokens and what they mean."""

    mode: Literal["jwt", "none"] = "jwt"
    """`none` makes everybody the same user with every right; only on loopback, or with server.insecure_no_auth."""
    keys: tuple[KeySettings, ...] = ()
    """Keys that tokens may be signed with, found by their `kid`; list the old and the new one while you rotate."""
    dev_secret_file: Path | None = None
    """Secret of HS256 key `dev`, for development: shared by `serve` and `token`; `--embedded` keeps one."""
    issuer: str | None = None
    """When set, `iss` must equal it."""
    audience: str | None = None
    """When set, `aud` must contain it: a token made for another service is then no use here."""
    leeway_seconds: float = Field(5, ge=0, le=300)
    """How far the issuer's clock may be off."""
    tenant_claim: str = Field("tenant", min_length=1)
    """The claim that names the tenant; a token without it belongs to tenant `default`."""
    sessions_claim: str = Field("sessions", min_length=1)
    """The claim with a list of session patterns (`*` stands for any characters)."""
    expiring_notice_seconds: float = Field(60, ge=0)
    """How long before its token expires a client is told: time to fetch a new one and renew in band."""
    ticket_seconds: float = Field(30, gt=0, le=300)
    """Life of a one-use connect ticket: it is fetched just before the connect."""
    longest_token_seconds: int = Field(86_400, ge=60)
    """How long a revocation is kept, so no token should live longer."""

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        repeated = sorted(kid for kid, count in Counter(key.kid for key in self.keys).items() if count > 1)
        if repeated:
            raise ValueError(f"keys: kid {repeated[0]!r} is used more than once; one name, one key, one algorithm")
        if self.dev_secret_file is not None and any(key.kid == "dev" for key in self.keys):
            raise ValueError("keys: kid 'dev' is the name of dev_secret_file; give the key another one")
        symmetric_files = {key.file for key in self.keys if key.file is not None and key.is_symmetric}
        for key in self.keys:
            if key.file in symmetric_files and not key.is_symmetric:
                raise ValueError(f"keys: {key.file} is used for HS256 and for {key.algorithm}; one file, one algorithm")
        return self

    @property
    def has_keys(self) -> bool:
        return bool(self.keys) or self.dev_secret_file is not None


__all__ = ["MIN_SECRET_BYTES", "AuthSettings", "KeySettings", "check_secret"]
