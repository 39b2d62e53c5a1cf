"""Tokens: what is accepted, and that everything else gets one and the same answer (U01)."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.adapters.auth import KeyRing, TokenAuthenticator, load_key_ring
from gateway.adapters.auth.tokens import MAX_CACHED, MAX_TOKEN_BYTES
from gateway.domain.access.principal import Scope
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.settings import AuthSettings, KeySettings

NOW = 1_800_000_000
SECRET = "s" * 40
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def pem(key: Any) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


SETTINGS = AuthSettings(
    keys=(
        KeySettings(kid="rs", algorithm="RS256", public_key=pem(RSA_KEY)),
        KeySettings(kid="rs-next", algorithm="RS256", public_key=pem(OTHER_RSA_KEY)),
        KeySettings(kid="es", algorithm="ES256", public_key=pem(EC_KEY)),
        KeySettings(kid="ed", algorithm="EdDSA", public_key=pem(ED_KEY)),
        KeySettings(kid="hs", algorithm="HS256", secret=SECRET),
    ),
    issuer="https://issuer.example",
    audience="relay",
    leeway_seconds=5,
)
KEYS = load_key_ring(SETTINGS)
CLAIMS: dict[str, Any] = {
    "sub": "ann",
    "tenant": "acme",
    "sessions": ["chat-*"],
    "scope": "subscribe publish",
    "jti": "t-1",
    "iat": NOW - 10,
    "exp": NOW + 600,
    "iss": "https://issuer.example",
    "aud": "relay",
}


def make(settings: AuthSettings = SETTINGS, keys: KeyRing = KEYS, now: Callable[[], float] = lambda: NOW) -> Any:
    return TokenAuthenticator(keys, settings, now)


def sign(changes: dict[str, Any] | None = None, *, key: Any = RSA_KEY, algorithm: str = "RS256", **header: Any) -> str:
    claims = {name: value for name, value in (CLAIMS | (changes or {})).items() if value is not ...}
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": "rs"} | header)


def raw(header: dict[str, Any], claims: Any, secret: bytes | None = None) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    signed = b".".join(parts)
    signature = b"" if secret is None else hmac.new(secret, signed, hashlib.sha256).digest()
    return (signed + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


@pytest.mark.parametrize(
    ("kid", "key", "algorithm"),
    [
        ("rs", RSA_KEY, "RS256"),
        ("rs-next", OTHER_RSA_KEY, "RS256"),
        ("es", EC_KEY, "ES256"),
        ("ed", ED_KEY, "EdDSA"),
        ("hs", SECRET, "HS256"),
    ],
)
def test_each_key_of_a_rotation_is_accepted_with_its_own_algorithm(kid: str, key: Any, algorithm: str) -> None:
    principal = make().authenticate(sign(key=key, algorithm=algorithm, kid=kid))

    assert (principal.tenant, principal.user, principal.patterns) == ("acme", "ann", ("chat-*",))
    assert principal.scopes == {Scope.SUBSCRIBE, Scope.PUBLISH}
    assert (principal.token_id, principal.issued_at, principal.expires_at) == ("t-1", NOW - 10, NOW + 600)


BAD_TOKENS: dict[str, str] = {
    "HS256 signed with the PEM text": raw({"alg": "HS256", "kid": "rs"}, CLAIMS, pem(RSA_KEY).encode()),
    "HS256 key's secret under the RS256 kid": raw({"alg": "HS256", "kid": "rs"}, CLAIMS, SECRET.encode()),
    "RS256 under the HS256 kid": sign(kid="hs"),
    "RS256 under the ES256 kid": sign(kid="es"),
    "the other key's signature": sign(kid="rs-next"),
    "alg none": raw({"alg": "none", "kid": "rs"}, CLAIMS),
    "alg None": raw({"alg": "None", "kid": "rs"}, CLAIMS),
    "alg nOnE": raw({"alg": "nOnE", "kid": "hs"}, CLAIMS),
    "no alg": raw({"kid": "hs"}, CLAIMS, SECRET.encode()),
    "alg of another type": raw({"alg": ["HS256"], "kid": "hs"}, CLAIMS, SECRET.encode()),
    "wrong aud": sign({"aud": "other"}),
    "no aud": sign({"aud": ...}),
    "aud of another type": sign({"aud": {"relay": 1}}),
    "wrong iss": sign({"iss": "https://evil.example"}),
    "no iss": sign({"iss": ...}),
    "no exp": sign({"exp": ...}),
    "exp as a text": raw({"alg": "HS256", "kid": "hs"}, CLAIMS | {"exp": str(NOW + 600)}, SECRET.encode()),
    "exp as a bool": raw({"alg": "HS256", "kid": "hs"}, CLAIMS | {"exp": True}, SECRET.encode()),
    "exp null": raw({"alg": "HS256", "kid": "hs"}, CLAIMS | {"exp": None}, SECRET.encode()),
    "exp NaN": raw({"alg": "HS256", "kid": "hs"}, CLAIMS | {"exp": float("nan")}, SECRET.encode()),
    "exp infinite": raw({"alg": "HS256", "kid": "hs"}, CLAIMS | {"exp": float("inf")}, SECRET.encode()),
    "expired beyond the leeway": sign({"exp": NOW - 5}),
    "nbf beyond the leeway": sign({"nbf": NOW + 6}),
    "nbf as a text": raw({"alg": "HS256", "kid": "hs"}, CLAIMS | {"nbf": "0"}, SECRET.encode()),
    "issued beyond the leeway": sign({"iat": NOW + 6}),
    "unknown kid": sign(kid="nobody"),
    "no kid, several keys": raw({"alg": "HS256"}, CLAIMS, SECRET.encode()),
    "kid of another type": raw({"alg": "HS256", "kid": 7}, CLAIMS, SECRET.encode()),
    "embedded jwk": sign(jwk={"kty": "oct", "k": "c2VjcmV0"}),
    "jku": sign(jku="https://evil.example/keys"),
    "x5u": sign(x5u="https://evil.example/cert"),
    "crit": sign(crit=["exp"]),
    "no sub": sign({"sub": ...}),
    "empty sub": sign({"sub": ""}),
    "sub as a number": raw({"alg": "HS256", "kid": "hs"}, CLAIMS | {"sub": 7}, SECRET.encode()),
    "sub with a control character": sign({"sub": "a\nb"}),
    "tenant as a number": sign({"tenant": 1}),
    "patterns of another type": sign({"sessions": {"a": 1}}),
    "an empty pattern": sign({"sessions": [""]}),
    "scope as a number": sign({"scope": 1}),
    "claims as a list": raw({"alg": "HS256", "kid": "hs"}, [1], SECRET.encode()),
    "a changed payload": sign()[:-400] + "AAAA" + sign()[-396:],
    "an empty token": "",
    "two segments": "a.b",
    "four segments": sign() + ".x",
    "three segments of junk": "!!!.###.$$$",
    "three segments that are no JSON": "AAAA.AAAA.AAAA",
    "not ASCII": "é.é.é",
    "a lone surrogate": "\ud800.a.b",
    "64 kB": "a" * 65_536,
    "deeply nested header": base64.urlsafe_b64encode(b"[" * 5000).decode().rstrip("=") + ".e30.AA",
}


@pytest.mark.parametrize("token", BAD_TOKENS.values(), ids=BAD_TOKENS.keys())
def test_every_bad_token_gets_the_same_error(token: str) -> None:
    with pytest.raises(RelayError) as caught:
        make().authenticate(token)

    assert caught.value == RelayError(ErrorCode.UNAUTHENTICATED, "the credentials are not valid")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_clock_that_is_off_by_less_than_the_leeway_is_accepted() -> None:
    authenticator = make()

    assert authenticator.authenticate(sign({"exp": NOW - 4})).user == "ann"
    assert authenticator.authenticate(sign({"iat": NOW + 4, "nbf": NOW + 4})).user == "ann"


def test_a_remembered_token_still_expires() -> None:
    clock = [float(NOW)]
    authenticator = make(now=lambda: clock[0])
    token = sign({"exp": NOW + 10})
    authenticator.authenticate(token)

    clock[0] = NOW + 15

    with pytest.raises(RelayError):
        authenticator.authenticate(token)


def test_the_cache_is_bounded_and_answers_alike() -> None:
    authenticator = make()
    tokens = [
        raw({"alg": "HS256", "kid": "hs"}, CLAIMS | {"jti": str(number)}, SECRET.encode())
        for number in range(MAX_CACHED + 10)
    ]

    for token in tokens:
        authenticator.authenticate(token)

    assert len(authenticator._cache) == MAX_CACHED
    assert authenticator.authenticate(tokens[0]) == authenticator.authenticate(tokens[0])


@pytest.mark.parametrize(("excess", "is_accepted"), [(-1, True), (0, True), (1, False)])
def test_a_token_has_at_most_8_kib(excess: int, is_accepted: bool) -> None:
    wanted = MAX_TOKEN_BYTES + excess
    padded = (  # base64 does not have every length: padding in two parts reaches all
        raw({"alg": "HS256", "kid": "hs", "pad": "h" * head}, CLAIMS | {"pad": "x" * body}, SECRET.encode())
        for head in range(4)
        for body in range(5_700, 6_000)
    )
    token = next(token for token in padded if len(token) == wanted)

    if is_accepted:
        assert make().authenticate(token).user == "ann"
    else:
        with pytest.raises(RelayError):
            make().authenticate(token)


def test_claims_that_are_not_given_mean_the_default_tenant_no_patterns_and_no_scope() -> None:
    principal = make().authenticate(sign({"tenant": ..., "sessions": ..., "scope": ..., "jti": ..., "iat": ...}))

    assert (principal.tenant, principal.patterns, principal.scopes) == ("default", None, frozenset())
    assert (principal.token_id, principal.issued_at) == (None, None)


def test_scopes_are_a_list_or_words_and_foreign_ones_are_ignored() -> None:
    principal = make().authenticate(sign({"scope": ["admin", "billing:read"], "sessions": "one"}))

    assert principal.scopes == {Scope.ADMIN}
    assert principal.patterns == ("one",)


def test_a_single_key_needs_no_kid() -> None:
    settings = AuthSettings(keys=(KeySettings(kid="only", algorithm="HS256", secret=SECRET),))

    principal = make(settings, load_key_ring(settings)).authenticate(raw({"alg": "HS256"}, CLAIMS, SECRET.encode()))

    assert principal.user == "ann"


def test_claim_names_come_from_the_settings() -> None:
    settings = SETTINGS.model_copy(update={"tenant_claim": "org", "sessions_claim": "rooms"})

    principal = make(settings).authenticate(sign({"org": "o-1", "rooms": ["r"], "tenant": 5}))

    assert (principal.tenant, principal.patterns) == ("o-1", ("r",))
