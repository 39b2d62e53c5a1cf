"""Judging a certificate and its key: what cannot be served is told with its file and its remedy, and nothing of it."""

import os
import ssl
from base64 import b64decode, encodebytes
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.config.certificate import MAX_BYTES, BadPair, judge, read_pair
from loadtest.certificates import DAY, Authority, Made, now, pem_of

AUTHORITY = Authority()
ONE, OTHER = AUTHORITY.sign(), AUTHORITY.sign()


def refused(chain: bytes, key: bytes) -> str:
    with pytest.raises(BadPair) as caught:
        judge(chain, key, "tls.crt", "tls.key")
    return str(caught.value)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    ONE.write(*files)
    return files


def test_a_good_pair_tells_names_serial_and_dates() -> None:
    until = (now() + 30 * DAY).replace(microsecond=0)
    made = AUTHORITY.sign(until=until, names=("relay.example.com", "10.0.0.1"))

    found = judge(made.chain, made.key, "", "")

    assert ("relay.example.com, 10.0.0.1", made.serial, int(until.timestamp())) == (
        found.subject,
        found.serial,
        found.not_after_seconds,
    )


def test_one_without_names_is_called_by_its_subject() -> None:
    made = AUTHORITY.sign(names=())

    assert "CN=Test gateway" == judge(made.chain, made.key, "", "").subject


def test_certificate_and_key_may_share_a_file() -> None:
    both = ONE.key + ONE.chain

    assert ONE.serial == judge(both, both, "", "").serial


def test_the_key_of_another_certificate_is_refused() -> None:
    assert "tls.key is not the key of the certificate in tls.crt" == refused(ONE.chain, OTHER.key)


def test_a_chain_that_does_not_begin_with_the_keys_certificate_is_told_so() -> None:
    """The usual mistake: the authority's certificate first."""
    turned = AUTHORITY.root + ONE.chain

    assert "tls.crt does not begin with the certificate of tls.key: put that one first" == refused(turned, ONE.key)


def test_a_key_with_a_password_is_refused_with_the_remedy() -> None:
    problem = refused(ONE.chain, pem_of(ONE.private_key, b"hunter2"))

    assert problem.startswith("tls.key has a password")
    assert "openssl pkey" in problem


@pytest.mark.parametrize("percent", [0, 1, 10, 33])
def test_half_a_certificate_is_refused(percent: int) -> None:
    assert refused(ONE.chain[: len(ONE.chain) * percent // 100], ONE.key).startswith(
        "tls.crt is no certificate chain in PEM"
    )


@pytest.mark.parametrize(
    ("part", "odd"),
    [
        (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x01"),  # a version that there is not
        (b"\x55\x1d\x23", b"\x55\x1d\x11"),  # its names twice
        (b"\x82\x09localhost", b"\xa3\x09\x30\x07lhost\x00\x00"),  # a name of X.400
    ],
)
def test_a_certificate_that_is_none_in_some_other_way_is_refused(part: bytes, odd: bytes) -> None:
    """The library has an exception of its own for each of these; none may end a gateway that looks at its files."""
    pem = ONE.chain.split(b"-----")[2]
    der = b64decode(pem)
    assert der.count(part) == 1
    chain = ONE.chain.replace(pem, b"\n" + encodebytes(der.replace(part, odd)), 1)

    assert refused(chain, ONE.key).startswith("tls.crt is no certificate chain in PEM")


@pytest.mark.parametrize("cut", [0, 1, 30, len(ONE.key) - 40])
def test_half_a_key_is_refused(cut: int) -> None:
    assert refused(ONE.chain, ONE.key[:cut]).startswith("tls.key is no private key in PEM")


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_whatever_is_in_the_files_is_refused_and_not_repeated(chain: bytes, key: bytes) -> None:
    begin, end = b"-----BEGIN CERTIFICATE-----\n", b"\n-----END CERTIFICATE-----\n"
    problems = {refused(chain, key), refused(begin + chain + end, key), refused(ONE.chain, key)}

    assert problems <= {
        "tls.crt is no certificate chain in PEM (-----BEGIN CERTIFICATE-----)",
        "tls.key is no private key in PEM (-----BEGIN PRIVATE KEY-----)",
    }


def test_a_read_pair_serves_what_is_in_the_files(files: tuple[Path, Path]) -> None:
    pair = read_pair(*files, "1.2")

    assert (ONE.serial, ssl.TLSVersion.TLSv1_2) == (pair.certificate.serial, pair.context.minimum_version)


def test_a_client_cannot_have_the_handshake_done_again_and_again(files: tuple[Path, Path]) -> None:
    assert read_pair(*files, "1.2").context.options & ssl.OP_NO_RENEGOTIATION


def test_1_3_can_be_asked_for(files: tuple[Path, Path]) -> None:
    assert ssl.TLSVersion.TLSv1_3 == read_pair(*files, "1.3").context.minimum_version


def test_a_missing_file_is_named(files: tuple[Path, Path]) -> None:
    files[1].unlink()

    with pytest.raises(BadPair, match=r"tls\.key cannot be read: No such file or directory"):
        read_pair(*files, "1.2")


def padded(more: int) -> bytes:
    return ONE.chain + b"\n" * (MAX_BYTES - len(ONE.chain) + more)


@pytest.mark.parametrize("more", [-1, 0])
def test_a_file_of_up_to_its_bound_is_read(files: tuple[Path, Path], more: int) -> None:
    files[0].write_bytes(padded(more))

    assert ONE.serial == read_pair(*files, "1.2").certificate.serial


def test_a_larger_file_is_refused(files: tuple[Path, Path]) -> None:
    files[0].write_bytes(padded(1))

    with pytest.raises(BadPair, match=f"is larger than {MAX_BYTES} bytes"):
        read_pair(*files, "1.2")


def test_a_key_that_openssl_finds_too_small_is_refused_before_a_client_sees_it(files: tuple[Path, Path]) -> None:
    weak = rsa.generate_private_key(65537, 1024)
    AUTHORITY.sign(key=weak).write(*files)

    with pytest.raises(BadPair, match="is refused by OpenSSL: EE_KEY_TOO_SMALL"):
        read_pair(*files, "1.2")


def test_the_digest_tells_pairs_apart_that_have_the_same_certificate(files: tuple[Path, Path]) -> None:
    """Another intermediate certificate is another pair."""
    before = read_pair(*files, "1.2").digest
    Made(ONE.chain + AUTHORITY.root, ONE.key, ONE.private_key, ONE.serial).write(*files)

    assert before != read_pair(*files, "1.2").digest


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tls.crt")

    with pytest.raises(BadPair, match="is a pipe"):
        read_pair(tmp_path / "tls.crt", tmp_path / "tls.key", "1.2")
