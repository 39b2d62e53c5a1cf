"""W3C trace context: a well-formed header is handed on unchanged, anything else is ignored."""

import pytest

from gateway.domain.exchange.trace import trace_id, traceparent_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("header", "is_taken"),
    [
        (GOOD, True),
        (f"cc-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-brings", True),
        (f"{GOOD}-more", False),
        (f"ff-{TRACE}-{SPAN}-01", False),
        (f"00-{'0' * 32}-{SPAN}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (GOOD.upper(), False),
        (f"{GOOD}\r\nX: y", False),
        (f"00-{TRACE}-{SPAN}", False),
        ("", False),
        (None, False),
    ],
)
def test_only_a_well_formed_header_is_handed_on(header: str | None, is_taken: bool) -> None:
    assert (header if is_taken else None) == traceparent_of(header)


def test_the_trace_id_is_for_logs() -> None:
    assert (TRACE, None) == (trace_id(GOOD), trace_id(None))
