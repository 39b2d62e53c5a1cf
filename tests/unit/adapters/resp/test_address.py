"""A server's address: what is understood, what is refused, what is never shown."""

from pathlib import Path

import pytest

from gateway.adapters.resp.address import Address, AddressError, SecretFileError, Sentinels, Tls, read_password
from gateway.settings.redis import RedisSettings


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://localhost", Address(host="localhost", port=6379)),
        ("redis://10.0.0.1:7000/3", Address(host="10.0.0.1", port=7000, database=3)),
        ("redis://[::1]:7000", Address(host="::1", port=7000)),
        ("redis://u:p%40ss@h:1/", Address(host="h", port=1, username="u", password="p@ss")),
        ("redis://:pw@h", Address(host="h", port=6379, password="pw")),
        ("redis://h?db=4", Address(host="h", port=6379, database=4)),
        ("unix:///run/valkey.sock", Address(path="/run/valkey.sock")),
        ("unix://u:p@/run/valkey.sock?db=2", Address(path="/run/valkey.sock", database=2, username="u", password="p")),
        ("rediss://h", Address(host="h", port=6379, tls=Tls())),
        ("rediss://h?ssl_cert_reqs=none", Address(host="h", port=6379, tls=Tls(verifies=False))),
    ],
)
def test_url_is_understood(url: str, expected: Address) -> None:
    assert expected == Address.parse(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "redis://",
        "redis://h:port",
        "redis://h/x",
        "redis://h/1?nonsense=1",
        "unix://",
        "redis://h?ssl_ca_certs=x",
    ],
)
def test_bad_url_is_refused(url: str) -> None:
    with pytest.raises(AddressError):
        Address.parse(url)


def test_refusal_does_not_repeat_the_password() -> None:
    with pytest.raises(AddressError) as refused:
        Address.parse("redis://user:sesame@host/notanumber?sesame=sesame")

    assert "sesame" not in f"{refused.value!r} {refused.value.__cause__!r}"


@pytest.mark.parametrize("url", ["rediss://anna:sesame@host:6380/2", "unix://anna:sesame@/run/v.sock"])
def test_user_and_password_are_never_shown(url: str) -> None:
    address = Address.parse(url)

    shown = f"{address} {address!r}"

    assert "anna" not in shown
    assert "sesame" not in shown


@pytest.mark.parametrize("url", ["redis://h:6379/0", "rediss://h:1/2", "redis://[::1]:5/0", "unix:///run/v.sock?db=1"])
def test_text_of_an_address_names_the_same_place(url: str) -> None:
    assert url == str(Address.parse(url))


def test_sentinel_url_is_understood() -> None:
    address = Address.parse("redis+sentinel://anna:sesame@a:1,b/m/2")

    assert address.sentinels == Sentinels((("a", 1), ("b", 26379)), "m")
    assert (address.database, address.username, address.password, address.tls) == (2, "anna", "sesame", None)
    assert str(address) == "redis+sentinel://a:1,b:26379/m/2"
    assert "sesame" not in repr(address)


@pytest.mark.parametrize("url", ["redis+sentinel://h", "redis+sentinel://h/m?ssl_ca_certs=x"])
def test_bad_sentinel_url_is_refused(url: str) -> None:
    with pytest.raises(AddressError):
        Address.parse(url)


def test_address_of_a_server_that_the_sentinels_name() -> None:
    address = Address.parse("rediss+sentinel://anna:sesame@a/m/2").at("10.0.0.1", 7000)

    assert str(address) == "rediss://10.0.0.1:7000/2"
    assert (address.username, address.password, address.sentinels) == ("anna", "sesame", None)


def test_settings_complete_the_url() -> None:
    settings = RedisSettings.model_validate({
        "url": "rediss+sentinel://anna@a/m",
        "password_file": "/run/password",
        "sentinel_username": "sam",
        "sentinel_password": "open",
        "tls_ca_file": "/run/ca.pem",
        "tls_server_name": "redis.local",
    })  # fmt: skip

    address = Address.of(settings)

    assert address.password_file == "/run/password"
    assert address.tls == Tls(ca_file="/run/ca.pem", server_name="redis.local")
    assert address.sentinels == Sentinels((("a", 26379),), "m", "sam", "open")
    assert "open" not in repr(address)


@pytest.mark.parametrize(
    ("content", "password"),
    [(b"p w", "p w"), (b"pw\n", "pw"), (b"pw\r\n", "pw"), (b" pw\n\n", " pw\n"), ("pä".encode(), "pä")],
)
def test_password_file_is_the_password_without_its_line_end(tmp_path: Path, content: bytes, password: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)

    assert password == read_password(str(file))


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "empty"), (b"\n", "empty"), (b"\xff", "not text"), (b"p" * 4097, "too large")]
)
def test_password_file_that_cannot_be_one(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)

    with pytest.raises(SecretFileError, match=reason):
        read_password(str(file))


def test_largest_password_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"p" * 4096)

    assert len(read_password(str(file))) == 4096


def test_password_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SecretFileError, match="absent: No such file"):
        read_password(str(tmp_path / "absent"))
