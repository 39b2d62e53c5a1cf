"""Slices joined with gateways: who is left out, who never is, and when the own pod is being deleted."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.pods.endpoints import MAX_SLICES, Endpoints, PodEndpoint, Slice, Standing, pod_of
from gateway.domain.wire.ids import GatewayId

NAMES = st.sampled_from(["relay-0", "relay-1", "relay-2", "relay-3"])
ENDPOINTS = st.builds(PodEndpoint, NAMES, st.sampled_from(["u1", "u2", ""]), st.sampled_from(Standing))
SLICES = st.builds(
    Slice, st.sampled_from(["a", "b", "c"]), st.lists(ENDPOINTS, max_size=4).map(tuple[PodEndpoint, ...])
)


def gateway(pod: str) -> GatewayId:
    return GatewayId(f"{pod}-0123456789abcdef")


def known(*endpoints: PodEndpoint) -> Endpoints:
    found = Endpoints()
    found.replace([Slice("a", endpoints)])
    return found


def test_a_gateway_belongs_to_the_pod_that_its_id_begins_with() -> None:
    assert "relay-7d9f-abcde" == pod_of(gateway("relay-7d9f-abcde"))


def test_who_is_not_ready_or_goes_away_is_left_out() -> None:
    endpoints = known(
        PodEndpoint("relay-0", "u0", Standing.READY),
        PodEndpoint("relay-1", "u1", Standing.NOT_READY),
        PodEndpoint("relay-2", "u2", Standing.TERMINATING),
    )

    assert [gateway("relay-0")] == endpoints.among([gateway(f"relay-{n}") for n in range(3)])


def test_a_gateway_without_an_endpoint_stays() -> None:
    endpoints = known(PodEndpoint("relay-0", "u0", Standing.READY))

    assert [gateway("elsewhere")] == endpoints.among([gateway("elsewhere")])


@given(st.lists(SLICES, max_size=6), st.lists(NAMES, min_size=1, unique=True))
def test_somebody_is_always_left_and_nobody_is_made_up(slices: list[Slice], pods: list[str]) -> None:
    endpoints = Endpoints()
    endpoints.replace(slices)
    gateways = [gateway(pod) for pod in pods]

    left = endpoints.among(gateways)

    assert left
    assert left == [one for one in gateways if one in left]


@given(st.lists(SLICES, max_size=6), st.lists(SLICES, max_size=6))
def test_changes_one_by_one_end_where_a_list_does(before: list[Slice], after: list[Slice]) -> None:
    """A watch that missed nothing and a fresh list tell the same."""
    listed, watched = Endpoints(), Endpoints()
    watched.replace(before)
    final = {one.name: one for one in after}
    for name in {one.name for one in before} - set(final):
        watched.remove(name)
    for one in after:
        assert watched.put(one)
    listed.replace(final.values())

    assert listed == watched


@given(st.lists(ENDPOINTS, min_size=1, max_size=6), NAMES)
def test_how_endpoints_are_spread_over_slices_does_not_matter(endpoints: list[PodEndpoint], pod: str) -> None:
    together, apart = known(*endpoints), Endpoints()
    apart.replace(Slice(f"s{n}", (endpoint,)) for n, endpoint in enumerate(reversed(endpoints)))

    assert together.standings == apart.standings
    assert together.is_terminating(pod, "u1") == apart.is_terminating(pod, "u1")


def test_a_pod_in_two_slices_terminates_if_one_of_them_says_so() -> None:
    endpoints = known(PodEndpoint("relay-0", "u0", Standing.READY), PodEndpoint("relay-0", "u0", Standing.TERMINATING))

    assert endpoints.is_terminating("relay-0", "u0")


def test_a_pod_is_not_taken_for_the_one_before_that_had_its_name() -> None:
    endpoints = known(
        PodEndpoint("relay-0", "old", Standing.TERMINATING), PodEndpoint("relay-0", "new", Standing.READY)
    )

    assert [True, False, False] == [endpoints.is_terminating("relay-0", uid) for uid in ("old", "new", "")]


def test_slices_beyond_the_bound_are_not_kept() -> None:
    """And those that are there go on being changed."""
    endpoints = Endpoints()
    endpoints.replace(Slice(f"s{n}", ()) for n in range(MAX_SLICES - 1))

    kept = [endpoints.put(Slice(name, ())) for name in ("last", "one-more", "last")]

    assert [True, False, True] == kept
    assert MAX_SLICES == len(endpoints.slices)


def test_endpoints_are_counted_by_standing() -> None:
    endpoints = known(
        PodEndpoint("relay-0", "", Standing.READY),
        PodEndpoint("relay-1", "", Standing.READY),
        PodEndpoint("relay-2", "", Standing.TERMINATING),
    )

    assert {"ready": 2, "terminating": 1} == endpoints.counts()
