"""The watch over a certificate's two files: both or nothing, and a pair that becomes whole is taken."""

import os
from pathlib import Path

import pytest

from gateway.adapters.config.certificate_watch import CertificateWatch
from gateway.domain.operator_error import OperatorError
from gateway.ports.certificates import Pair, PairRefused
from gateway.settings.tls import TlsSettings
from loadtest.certificates import Authority, SecretVolume

AUTHORITY = Authority()
ONE, TWO = AUTHORITY.sign(), AUTHORITY.sign()


def serial_of(found: Pair | PairRefused | None) -> str | None:
    assert found is None or isinstance(found, Pair), found
    return None if found is None else found.certificate.serial


def problem_of(found: Pair | PairRefused | None) -> str | None:
    assert found is None or isinstance(found, PairRefused), found
    return None if found is None else found.problem


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    ONE.write(*files)
    return files


@pytest.fixture
def watch(files: tuple[Path, Path]) -> CertificateWatch:
    return watching(*files)


def watching(certificate_file: Path, key_file: Path) -> CertificateWatch:
    watch = CertificateWatch(certificate_file, key_file, TlsSettings())
    assert ONE.serial == watch.load().certificate.serial
    return watch


def test_what_does_not_change_is_not_told_again(watch: CertificateWatch) -> None:
    assert [None] * 3 == [watch.look() for _ in range(3)]


def test_a_new_pair_is_told_once_when_two_looks_saw_it(watch: CertificateWatch, files: tuple[Path, Path]) -> None:
    TWO.write(*files)

    assert [None, TWO.serial, None, None] == [serial_of(watch.look()) for _ in range(4)]


def test_a_secrets_swapped_link_is_seen_though_size_and_time_are_the_same(tmp_path: Path) -> None:
    volume = SecretVolume(tmp_path / "tls", ONE)
    watch = watching(volume.certificate_file, volume.key_file)
    volume.put(TWO)
    for file in (volume.certificate_file, volume.key_file):
        os.utime(file, (1, 1))

    watch.look()

    assert TWO.serial == serial_of(watch.look())


def test_files_that_are_renamed_over_are_seen(watch: CertificateWatch, files: tuple[Path, Path]) -> None:
    fresh = files[0].with_suffix(".a"), files[1].with_suffix(".b")
    TWO.write(*fresh)
    for new, old in zip(fresh, files, strict=True):
        new.replace(old)
    watch.look()

    assert TWO.serial == serial_of(watch.look())


def test_a_pair_that_is_written_one_file_a_look_is_never_read_between(
    watch: CertificateWatch, files: tuple[Path, Path]
) -> None:
    told = [watch.look()]
    files[0].write_bytes(TWO.chain)
    told.append(watch.look())
    files[1].write_bytes(TWO.key)
    told.append(watch.look())

    assert [None] * 3 == told
    assert TWO.serial == serial_of(watch.look())


def test_a_pair_that_changes_while_it_is_read_is_read_again(
    watch: CertificateWatch, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a certificate could be told with the context of another."""
    three, read = AUTHORITY.sign(), watch._read

    def read_while_it_changes() -> Pair:
        found = read()
        three.write(*files)
        return found

    TWO.write(*files)
    watch.look()
    with monkeypatch.context() as during:
        during.setattr(watch, "_read", read_while_it_changes)
        told = watch.look()

    assert [None, None, three.serial] == [told, *(serial_of(watch.look()) for _ in range(2))]


def test_half_a_new_pair_is_refused_once_and_taken_when_it_is_whole(
    watch: CertificateWatch, files: tuple[Path, Path]
) -> None:
    files[0].write_bytes(TWO.chain)
    problems = [problem_of(watch.look()) for _ in range(4)]
    files[1].write_bytes(TWO.key)
    serials = [serial_of(watch.look()) for _ in range(3)]

    assert [None, f"{files[1]} is not the key of the certificate in {files[0]}", None, None] == problems
    assert [None, TWO.serial, None] == serials


def test_the_old_pair_that_comes_back_is_told(watch: CertificateWatch, files: tuple[Path, Path]) -> None:
    """Or the refusal would stand for ever."""
    files[1].unlink()
    watch.look()
    gone = problem_of(watch.look())
    ONE.write(*files)
    watch.look()

    assert gone == f"{files[1]} cannot be read: No such file or directory"
    assert ONE.serial == serial_of(watch.look())


def test_a_gateway_does_not_start_without_its_certificate(files: tuple[Path, Path]) -> None:
    files[0].unlink()

    with pytest.raises(OperatorError, match=r"tls\.certificate_file and tls\.key_file cannot be used: .*No such file"):
        CertificateWatch(*files, TlsSettings()).load()
