"""A gateway's record: round trips of the last minute, and counts that are not taken with every record."""

from gateway.core.vitals import COUNT_SECONDS, WINDOW_SECONDS, Vitals
from gateway.domain.measures import RTT_BOUNDS, Gauges, Histogram
from gateway.domain.wire.ids import GatewayId
from gateway.ports import GatewayRecord


class Scene:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.counted = 0
        self.rtt = Histogram(RTT_BOUNDS)
        base = GatewayRecord(GatewayId("gw"), "host:1", "1", "serving", 7, 0)
        self.vitals = Vitals(lambda: base, self.gauges, self.rtt, lambda: self.now)

    def gauges(self) -> Gauges:
        self.counted += 1
        return Gauges({}, 0, 5, 0, self.counted, 0, True, True, False, open_ingests=2)

    def after(self, seconds: float) -> GatewayRecord:
        self.now += seconds
        return self.vitals.describe()


def test_record_has_what_was_counted() -> None:
    record = Scene().after(0)

    assert (7, 2, 1, 5) == (record.connections, record.open_runs, record.behind_messages, record.unsent_bytes)


def test_all_connections_are_counted_only_every_few_seconds() -> None:
    it = Scene()

    counts = [it.after(COUNT_SECONDS / 4).behind_messages for _ in range(9)]

    assert [1, 1, 1, 1, 2, 2, 2, 2, 3] == counts


def test_round_trips_of_before_are_forgotten() -> None:
    """A bad minute does not darken the next ones."""
    it = Scene()
    it.after(0)
    it.rtt.observe(2.0, 100)
    bad = it.after(COUNT_SECONDS)
    for _ in range(int(WINDOW_SECONDS / COUNT_SECONDS) + 1):
        it.rtt.observe(0.015, 100)
        good = it.after(COUNT_SECONDS)

    assert bad.rtt_p50_ms is not None
    assert bad.rtt_p50_ms > 1_500
    assert good.rtt_p99_ms is not None
    assert 10 < good.rtt_p99_ms <= 20


def test_no_answered_ping_no_figure() -> None:
    assert Scene().after(0).rtt_p99_ms is None
