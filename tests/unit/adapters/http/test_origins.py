"""Which pages may connect: exact origins and patterns of one label (U05)."""

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from gateway.adapters.http.origins import Origins
from gateway.domain.wire.errors import RelayError

ALLOWED = ("https://app.example.com", "https://*.example.org", "http://*.test.example.net:8080")


def headers(*origins: str) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict([("Host", "gateway"), *(("Origin", origin) for origin in origins)]))


@pytest.mark.parametrize(
    "origin",
    [
        "https://app.example.com",
        "https://a.example.org",
        "https://xn--bcher-kva.example.org",
        "http://one.test.example.net:8080",
    ],
)
def test_pages_that_are_named_may(origin: str) -> None:
    assert Origins(ALLOWED).check(headers(origin)) == origin


@pytest.mark.parametrize(
    "origins",
    [
        ("https://example.org",),
        ("https://.example.org",),
        ("https://a.b.example.org",),
        ("https://aexample.org",),
        ("https://a.example.org.evil.com",),
        ("https://evil.com/.example.org",),
        ("https://evil.com#.example.org",),
        ("https://evil.com?a.example.org",),
        ("https://user@a.example.org",),
        ("https://A.example.org",),
        ("HTTPS://a.example.org",),
        ("https://a.example.org:8443",),
        ("http://a.example.org",),
        ("https://a.example.org\n",),
        ("https://*.example.org",),
        ("http://one.test.example.net",),
        ("https://sub.app.example.com",),
        ("null",),
        ("",),
        ("https://a.example.org", "https://a.example.org"),
        ("https://gateway",),
    ],
)
def test_pages_that_only_look_like_them_may_not(origins: tuple[str, ...]) -> None:
    """Two headers, other schemes, ports and letters, hosts that begin or end alike."""
    with pytest.raises(RelayError, match="forbidden"):
        Origins(ALLOWED).check(headers(*origins))


def test_a_page_may_send_and_read_what_clients_need() -> None:
    origins = Origins(ALLOWED)

    allowed = origins.preflight("https://app.example.com")["Access-Control-Allow-Headers"].lower().split(", ")
    exposed = origins.cors("https://app.example.com")["Access-Control-Expose-Headers"].lower().split(", ")

    assert {"authorization", "last-event-id", "idempotency-key", "traceparent", "if-none-match"} <= set(allowed)
    assert {"etag", "retry-after"} <= set(exposed)
