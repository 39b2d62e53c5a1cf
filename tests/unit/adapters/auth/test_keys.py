"""Keys: what is refused at start-up, without a word of their content."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from gateway.adapters.auth import load_key_ring
from gateway.domain.operator_error import OperatorError
from gateway.settings import AuthSettings, KeySettings


def public_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


P256 = ec.generate_private_key(ec.SECP256R1())
PRIVATE_PEM = P256.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize(
    ("algorithm", "pem", "problem"),
    [
        ("RS256", public_pem(P256), "RSA key of at least 2048 bits"),
        ("RS256", public_pem(rsa.generate_private_key(public_exponent=65537, key_size=1024)), "at least 2048 bits"),
        ("ES256", public_pem(ec.generate_private_key(ec.SECP384R1())), "P-256"),
        ("EdDSA", public_pem(P256), "Ed25519"),
        ("ES256", PRIVATE_PEM, "private key"),
        ("ES256", "-----BEGIN PUBLIC KEY-----\nnonsense\n-----END PUBLIC KEY-----", "no public key in PEM form"),
    ],
)
def test_a_key_that_does_not_fit_its_algorithm_is_refused(algorithm: str, pem: str, problem: str) -> None:
    settings = AuthSettings(keys=(KeySettings(kid="k1", algorithm=algorithm, public_key=pem),))

    with pytest.raises(OperatorError, match=problem) as caught:
        load_key_ring(settings)

    assert "'k1'" in caught.value.message
    assert "BEGIN" not in caught.value.message


@pytest.mark.parametrize("content", ["short", public_pem(P256)])
def test_a_secret_file_with_a_pem_or_too_little_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "secret"
    file.write_text(content)

    with pytest.raises(OperatorError, match="HS256 secret"):
        load_key_ring(AuthSettings(keys=(KeySettings(kid="hs", algorithm="HS256", file=file),)))


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="nowhere cannot be read"):
        load_key_ring(AuthSettings(keys=(KeySettings(kid="hs", algorithm="HS256", file=tmp_path / "nowhere"),)))


def test_no_key_at_all_says_what_to_do() -> None:
    with pytest.raises(OperatorError, match="--auth none on loopback"):
        load_key_ring(AuthSettings())


def test_the_development_secret_is_key_dev_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "dev-secret"
    file.write_text("d" * 64 + "\n")

    ring = load_key_ring(AuthSettings(dev_secret_file=file))

    assert ring.keys["dev"].material == b"d" * 64
    assert "dddd" not in repr(ring)
