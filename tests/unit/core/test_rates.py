"""Token buckets by key."""

from gateway.core.rates import MAX_KEYS, Rates


def test_a_burst_then_the_rate() -> None:
    now = [0.0]
    rates = Rates(2, 3, lambda: now[0])
    waits = [rates.take("a") for _ in range(4)]
    now[0] = 0.5
    later = [rates.take("a"), rates.take("a")]

    assert waits == [0, 0, 0, 0.5]
    assert later == [0, 0.5]


def test_keys_are_apart_and_bounded() -> None:
    rates = Rates(1, 1, lambda: 0.0)
    for key in range(MAX_KEYS + 5):
        assert rates.take(key) == 0

    assert rates.take(MAX_KEYS) > 0
    assert rates.take(0) == 0, "the longest unused one went, and begins anew"
