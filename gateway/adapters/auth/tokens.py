"""Verifies JWTs: signature by the key that `kid` names, with that key's algorithm, then the claims (U01).

Every token that is not accepted gets one and the same error, so that nobody learns why. Must never log a token.
"""

from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import jwt
import msgspec

from gateway.adapters.auth.keys import KeyRing, VerificationKey
from gateway.domain.access.principal import Principal, Scope
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import DEFAULT_TENANT, Tenant, UserId
from gateway.settings import AuthSettings

MAX_TOKEN_BYTES: Final = 8 * 1024
"""What fits into the headers of any proxy; beyond it nothing is even decoded."""
MAX_CACHED: Final = 4_096
"""Verified tokens remembered by their digest; at about 1 KiB each."""

_FORBIDDEN_HEADERS = frozenset({"jwk", "jku", "x5c", "x5u", "crit", "b64", "zip"})
"""Keys that a token brings along, and extensions that would have to be understood: never."""
_KNOWN_SCOPES = {scope.value: scope for scope in Scope}
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Refused(Exception):
    """This token is not accepted; the reason stays here."""


@dataclass(frozen=True, slots=True)
class _Verified:
    principal: Principal
    not_before: float
    expires_at: float


class TokenAuthenticator:
    """One per gateway. `wall_clock` gives Unix seconds."""

    def __init__(self, keys: KeyRing, settings: AuthSettings, wall_clock: Callable[[], float]) -> None:
        self._keys = keys
        self._settings = settings
        self._wall_clock = wall_clock
        self._jws = jwt.PyJWS(algorithms=sorted({key.algorithm for key in keys.keys.values()}))
        self._cache: dict[bytes, _Verified] = {}

    def authenticate(self, token: str) -> Principal:
        """Raises RelayError UNAUTHENTICATED."""
        try:
            return self._verified(token).principal
        except _Refused:
            pass
        raise RelayError(ErrorCode.UNAUTHENTICATED, "the credentials are not valid")

    def _verified(self, token: str) -> _Verified:
        if not token.isascii() or not 0 < len(token) <= MAX_TOKEN_BYTES:
            raise _Refused
        digest = sha256(token.encode()).digest()
        verified = self._cache.get(digest)
        if verified is None:
            verified = self._verify(token)
            while len(self._cache) >= MAX_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[digest] = verified
        now, leeway = self._wall_clock(), self._settings.leeway_seconds
        if now >= verified.expires_at + leeway or now < verified.not_before - leeway:
            self._cache.pop(digest, None)
            raise _Refused
        return verified

    def _verify(self, token: str) -> _Verified:
        key = self._key_for(token)
        try:
            payload = self._jws.decode(token, key.material, algorithms=[key.algorithm])
            claims = _decode(payload)
        except (jwt.PyJWTError, msgspec.DecodeError, ValueError, TypeError, RecursionError):
            raise _Refused from None
        return self._read(claims)

    def _key_for(self, token: str) -> VerificationKey:
        segment = token.partition(".")[0]
        try:
            header = _decode(urlsafe_b64decode(segment + "=" * (-len(segment) % 4)))
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise _Refused from None
        kid = header.get("kid")
        key = self._keys.find(kid) if kid is None or isinstance(kid, str) else None
        if key is None or header.get("alg") != key.algorithm or not _FORBIDDEN_HEADERS.isdisjoint(header):
            raise _Refused
        return key

    def _read(self, claims: dict[str, Any]) -> _Verified:
        settings = self._settings
        if settings.issuer is not None and claims.get("iss") != settings.issuer:
            raise _Refused
        if settings.audience is not None and settings.audience not in _words(claims.get("aud")):
            raise _Refused
        expires_at = _seconds(claims.get("exp"))
        issued_at = _seconds(claims["iat"]) if "iat" in claims else None
        not_before = max(_seconds(claims.get("nbf", 0)), issued_at or 0)
        patterns = claims.get(settings.sessions_claim)
        try:
            principal = Principal(
                tenant=Tenant(_text(claims.get(settings.tenant_claim, DEFAULT_TENANT))),
                user=UserId(_text(claims.get("sub"))),
                scopes=_scopes(claims.get("scope")),
                patterns=None if patterns is None else _words(patterns),
                token_id=_text(claims["jti"]) if "jti" in claims else None,
                issued_at=None if issued_at is None else int(issued_at),
                expires_at=int(expires_at),
            )
        except ValueError:
            raise _Refused from None
        return _Verified(principal, not_before, expires_at)


def _seconds(value: Any) -> float:
    """A NumericDate: a finite number, never a text that looks like one."""
    if type(value) not in (int, float) or not 0 <= value < 1e11:
        raise _Refused
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Refused
    return value


def _words(value: Any) -> tuple[str, ...]:
    """One text, or a list of them."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise _Refused
    return tuple(value)


def _scopes(value: Any) -> frozenset[Scope]:
    """Space-separated or a list. Scopes of other services are no concern of ours. Without the claim: none."""
    if value is None:
        return frozenset()
    words = value.split() if isinstance(value, str) else _words(value)
    return frozenset(_KNOWN_SCOPES[word] for word in words if word in _KNOWN_SCOPES)


__all__ = ["MAX_TOKEN_BYTES", "TokenAuthenticator"]
