"""What an API server sends, read: endpoints by their conditions, events, failures, and lines however cut."""

import json
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.kube.reading import Lines, failure, read_change, read_listing
from gateway.domain.pods.endpoints import PodEndpoint, Slice, Standing
from gateway.ports.pods import AwayReason, Bookmark, Expired, PodsAway, SlicePut, SliceRemoved


def told(**conditions: bool | None) -> dict[str, Any]:
    target = {"kind": "Pod", "name": "relay-0", "uid": "u0"}
    return {"addresses": ["10.0.0.1"], "conditions": conditions, "targetRef": target}


def slice_of(*endpoints: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "relay-abc", "resourceVersion": "7"}, "endpoints": list(endpoints)}


def event(kind: str, what: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": what}).encode()


@pytest.mark.parametrize(
    ("conditions", "standing"),
    [
        ({}, Standing.READY),
        ({"ready": None, "terminating": None}, Standing.READY),
        ({"ready": True, "serving": True, "terminating": False}, Standing.READY),
        ({"ready": False, "serving": False, "terminating": False}, Standing.NOT_READY),
        ({"ready": False, "serving": True, "terminating": True}, Standing.TERMINATING),
        ({"ready": True, "serving": True, "terminating": True}, Standing.TERMINATING),
    ],
)
def test_conditions_that_are_not_said_are_good_ones(conditions: dict[str, bool | None], standing: Standing) -> None:
    body = json.dumps({"metadata": {"resourceVersion": "9"}, "items": [slice_of(told(**conditions))]}).encode()

    listing = read_listing(body)

    assert "9" == listing.version
    assert (Slice("relay-abc", (PodEndpoint("relay-0", "u0", standing),)),) == listing.slices


@pytest.mark.parametrize("items", [None, [], [{"metadata": {"name": "s"}, "endpoints": None}]])
def test_a_service_without_pods_is_a_list(items: Any) -> None:
    listing = read_listing(json.dumps({"metadata": {"resourceVersion": "9"}, "items": items}).encode())

    assert [()] * len(items or []) == [one.endpoints for one in listing.slices]


@pytest.mark.parametrize("target", [None, {"kind": "Node", "name": "n"}, {"kind": "Pod"}])
def test_an_endpoint_that_is_no_pod_is_left_out(target: Any) -> None:
    change = read_change(event("ADDED", slice_of({"addresses": ["10.0.0.1"], "targetRef": target})))

    assert SlicePut(Slice("relay-abc", ()), "7") == change


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ADDED", SlicePut(Slice("relay-abc", ()), "7")),
        ("MODIFIED", SlicePut(Slice("relay-abc", ()), "7")),
        ("DELETED", SliceRemoved("relay-abc", "7")),
        ("BOOKMARK", Bookmark("7")),
        ("NOVELTY", None),
    ],
)
def test_events(kind: str, expected: Any) -> None:
    assert expected == read_change(event(kind, slice_of()))


def test_an_expired_version_is_told_apart_from_every_failure() -> None:
    with pytest.raises(Expired):
        read_change(event("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"}))


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, AwayReason.UNAUTHORIZED),
        (403, AwayReason.FORBIDDEN),
        (404, AwayReason.NOT_FOUND),
        (418, AwayReason.MALFORMED),
        (429, AwayReason.BUSY),
        (500, AwayReason.BUSY),
        (503, AwayReason.BUSY),
    ],
)
def test_statuses(status: int, reason: AwayReason) -> None:
    failed = failure(status, b'{"message": "said the server"}', "7")

    assert isinstance(failed, PodsAway)
    assert (reason, f"{status} said the server", 7.0) == (failed.reason, failed.detail, failed.retry_after_seconds)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"message": null}'])
def test_a_failure_needs_no_body(body: bytes) -> None:
    failed = failure(503, body, "Wed, 21 Oct 2026 07:28:00 GMT")

    assert isinstance(failed, PodsAway)
    assert 0.0 == failed.retry_after_seconds


KEYS = st.sampled_from(["type", "object", "metadata", "items", "endpoints", "code", "targetRef", "conditions"])
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
)


@given(JSON)
def test_what_is_no_answer_of_an_api_server_is_malformed_and_never_a_crash(value: Any) -> None:
    body = json.dumps(value).encode()

    for read in (read_listing, read_change):
        with suppress(PodsAway, Expired):
            read(body)


@given(st.lists(st.binary(min_size=1, max_size=9).filter(lambda line: b"\n" not in line and line.strip())), st.data())
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cutter, found = Lines(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += cutter.feed(stream[:size])
        stream = stream[size:]

    assert lines == found


@pytest.mark.parametrize(("length", "is_taken"), [(9, True), (10, True), (11, False)])
def test_a_line_is_held_up_to_its_bound(length: int, is_taken: bool) -> None:
    outcome = nullcontext() if is_taken else pytest.raises(PodsAway, match="malformed")

    with outcome:
        assert [] == list(Lines(max_bytes=10).feed(b"x" * length))
