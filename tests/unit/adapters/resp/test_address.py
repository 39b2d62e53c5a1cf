"""A server's address: what is understood, what is refused, what is never shown."""

import pytest

from gateway.adapters.resp.address import Address, AddressError, Tls


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
