"""Which certificate is in force: a bad new one changes nothing, a good one is swapped in whole."""

import ssl

import pytest
from structlog.testing import capture_logs

from gateway.core.certificates import CertificateDesk
from gateway.domain.certificates import Certificate
from gateway.domain.measures import Measures
from gateway.ports.certificates import Pair, PairRefused


def pair(serial: str, since: int = 0, until: int = 1_000_000) -> Pair:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    return Pair(Certificate("relay.example.com", serial, since, until), context, serial.encode())


class Nothing:
    def look(self) -> None:
        return None


class Scene:
    def __init__(self, first: Pair) -> None:
        self.now = 500.0
        self.measures = Measures()
        self.desk = CertificateDesk(first, Nothing(), self.measures, lambda: self.now, 1)

    @property
    def reloads(self) -> tuple[int, int]:
        return self.measures.certificate_reloads["taken"], self.measures.certificate_reloads["refused"]


@pytest.fixture
def it() -> Scene:
    return Scene(pair("one"))


def test_a_new_pair_serves_the_next_handshake(it: Scene) -> None:
    new = pair("two")
    it.desk.take(new)

    assert new.context is it.desk.context
    assert ("two", (1, 0)) == (it.desk.certificate.serial, it.reloads)


def test_a_refused_one_leaves_the_old_one_in_force_and_is_warned_of_once(it: Scene) -> None:
    before = it.desk.context
    with capture_logs() as logs:
        it.desk.take(PairRefused("tls.key has a password"))
        it.desk.take(PairRefused("tls.key has a password"))

    assert before is it.desk.context
    assert (0, 1) == it.reloads
    assert [("certificate_refused", "warning", "tls.key has a password")] == [
        (line["event"], line["log_level"], line["problem"]) for line in logs
    ]


def test_a_good_pair_ends_the_complaint(it: Scene) -> None:
    it.desk.take(PairRefused("no key"))
    it.desk.take(pair("two"))

    assert "" == it.desk.problem


def test_the_old_pair_that_comes_back_ends_it_too_and_counts_as_no_change(it: Scene) -> None:
    it.desk.take(PairRefused("no key"))
    it.desk.take(pair("one"))

    assert ("", (0, 1)) == (it.desk.problem, it.reloads)


def test_one_that_is_not_valid_yet_waits_for_its_time(it: Scene) -> None:
    it.desk.take(pair("two", since=600))
    early = it.desk.certificate.serial, it.desk.problem
    it.now = 600
    it.desk.take(None)

    assert ("one", "the new certificate is not yet valid, and the one in force is valid") == early
    assert ("two", "") == (it.desk.certificate.serial, it.desk.problem)


def test_what_waits_is_forgotten_when_the_files_say_something_else(it: Scene) -> None:
    it.desk.take(pair("two", since=600))
    it.desk.take(PairRefused("no key"))
    it.now = 700
    it.desk.take(None)

    assert ("one", "no key") == (it.desk.certificate.serial, it.desk.problem)


def test_an_expired_one_never_takes_the_place_of_a_valid_one(it: Scene) -> None:
    it.desk.take(pair("two", until=499))

    assert ("one", (0, 1)) == (it.desk.certificate.serial, it.reloads)


def test_with_an_expired_one_in_force_the_expired_new_one_is_taken() -> None:
    it = Scene(pair("one", until=400))
    it.desk.take(pair("two", until=450))

    assert "two" == it.desk.certificate.serial


def test_a_start_with_an_expired_certificate_is_warned_of_and_serves() -> None:
    with capture_logs() as logs:
        it = Scene(pair("one", until=400))

    assert it.desk.context is not None
    assert [("certificate_in_force", "warning", "expired")] == [
        (line["event"], line["log_level"], line["state"]) for line in logs
    ]
