"""Addresses: only trusted proxies are believed, from the right, and what is no address is nobody's."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.admission.addresses import MAX_HOPS, ForwardedBy, client_address, key_of, networks_of, parse_address

TRUSTED = networks_of(["10.0.0.0/8", "fd00::/8"])
PROXY = "10.1.1.1"


def seen(peer: str, *headers: str, by: ForwardedBy = ForwardedBy.X_FORWARDED_FOR) -> str:
    return str(client_address(peer, headers, TRUSTED, by))


@pytest.mark.parametrize("header", ["1.2.3.4", "10.0.0.1", "1.2.3.4, 10.0.0.1", ""])
def test_a_peer_that_is_no_proxy_is_believed_nothing(header: str) -> None:
    assert seen("203.0.113.9", header) == "203.0.113.9"


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        (["198.51.100.7"], "198.51.100.7"),
        (["1.1.1.1, 198.51.100.7"], "198.51.100.7"),
        (["1.1.1.1", "198.51.100.7"], "198.51.100.7"),
        (["1.1.1.1, 198.51.100.7, 10.2.2.2"], "198.51.100.7"),
        (["198.51.100.7:4711"], "198.51.100.7"),
        (["[2001:db8::7]:4711"], "2001:db8::7"),
        (["2001:db8::7"], "2001:db8::7"),
        (["::ffff:198.51.100.7"], "198.51.100.7"),
        (["198.51.100.7, ::ffff:10.0.0.3"], "198.51.100.7"),
        (["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
        ([], PROXY),
    ],
)
def test_the_first_from_the_right_that_is_no_proxy(headers: list[str], address: str) -> None:
    assert seen(PROXY, *headers) == address


@pytest.mark.parametrize("junk", ["unknown", "_hidden", "", "999.1.1.1", "010.1.1.1", "a" * 5_000, "localhost", "1.2"])
def test_junk_ends_at_the_proxy_that_wrote_it(junk: str) -> None:
    """What stands left of it may be anybody's invention."""
    assert seen(PROXY, f"1.1.1.1, {junk}") == PROXY
    assert seen(PROXY, f"1.1.1.1, {junk}, 10.2.2.2") == "10.2.2.2"


@pytest.mark.parametrize(
    ("header", "address"),
    [
        ("for=198.51.100.7", "198.51.100.7"),
        ('For="[2001:db8::7]:4711";proto=https', "2001:db8::7"),
        ("for=1.1.1.1, proto=http;for=198.51.100.7;by=10.0.0.1, for=10.2.2.2", "198.51.100.7"),
        ("for=1.1.1.1, for=unknown", PROXY),
        ("for=1.1.1.1, for=_secret", PROXY),
        ("for=1.1.1.1, proto=https", PROXY),
        ("for=1.1.1.1;for=2.2.2.2", PROXY),
        ("1.1.1.1", PROXY),
    ],
)
def test_the_header_of_rfc_7239(header: str, address: str) -> None:
    assert seen(PROXY, header, by=ForwardedBy.FORWARDED) == address


def test_an_endless_header_is_read_to_a_bound() -> None:
    assert seen(PROXY, ", ".join(["1.1.1.1"] + ["10.9.9.9"] * MAX_HOPS)) == "10.9.9.9"


@given(st.lists(st.text(max_size=40), max_size=5), st.sampled_from(ForwardedBy))
def test_no_header_of_an_untrusted_peer_changes_its_address(headers: list[str], by: ForwardedBy) -> None:
    assert seen("203.0.113.9", *headers, by=by) == "203.0.113.9"


@given(st.lists(st.text(max_size=40), max_size=5))
def test_what_a_client_wrote_left_of_its_address_does_not_matter(invented: list[str]) -> None:
    assert seen(PROXY, *invented, "198.51.100.7") == "198.51.100.7"


def test_one_customer_of_ipv6_is_one_key() -> None:
    one, same, other = (ip_address(text) for text in ("2001:db8:0:1::1", "2001:db8:0:1:ffff::9", "2001:db8:0:2::1"))

    assert key_of(one) == key_of(same) != key_of(other)


def test_families_share_no_key() -> None:
    assert key_of(ip_address("0.0.0.1")) != key_of(ip_address("0:0:0:1::"))
    assert key_of(ip_address("198.51.100.7")) != key_of(ip_address("198.51.100.8"))


def test_a_zone_is_no_part_of_an_address() -> None:
    assert str(parse_address("fe80::1%eth0")) == "fe80::1"


@pytest.mark.parametrize("word", ["0.0.0.0/0", "::/0", "10.0.0.1/8", "proxy.internal"])
def test_networks_that_are_everybody_or_none_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        networks_of([word])
