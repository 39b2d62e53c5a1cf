"""What the readers say of what arrived."""

from loadtest.bench.clients import Totals, percentile_ms


def test_times_of_a_forgotten_second_do_not_count() -> None:
    totals = Totals()
    totals.latencies_ns.extend([1_000_000])
    totals.answer("keep")
    totals.latencies_ns.extend([900_000_000])
    totals.answer("forget")
    totals.latencies_ns.extend([3_000_000])
    totals.answer("keep")

    assert totals.answer("times") == {"p50_ms": 3.0, "p99_ms": 3.0}


def test_frames_are_those_since_the_last_question() -> None:
    totals = Totals()
    totals.frames = 7

    assert [totals.answer("keep")["frames"], totals.answer("keep")["frames"]] == [7, 0]


def test_one_of_a_hundred_times_is_beyond_the_99th_percentile() -> None:
    times = [1_000_000] * 198 + [2_000_000, 500_000_000]

    assert percentile_ms(times, 0.99) == 2.0
