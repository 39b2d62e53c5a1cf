"""What an acknowledging client has not acknowledged."""

from gateway.domain.sessions.window import MARK_BYTES, AckWindow


def test_nothing_sent_is_nothing_open() -> None:
    assert AckWindow().unacked_bytes(0) == 0


def test_an_ack_of_everything_closes_the_window() -> None:
    window = AckWindow()
    window.mark(3, 5_000, now=1.0)

    window.ack(4, sent_seq=4, sent_bytes=6_000, now=2.0)

    assert window.unacked_bytes(6_000) == 0


def test_an_ack_counts_to_the_last_mark_below_it() -> None:
    window = AckWindow()
    for i in range(1, 4):
        window.mark(10 * i, MARK_BYTES * i, now=float(i))

    window.ack(25, sent_seq=30, sent_bytes=MARK_BYTES * 3, now=9.0)

    assert window.unacked_bytes(MARK_BYTES * 3) == MARK_BYTES


def test_time_to_the_ack_is_measured_from_the_newest_mark_below_it() -> None:
    window = AckWindow()
    window.mark(10, 4_096, now=1.0)
    window.mark(20, 8_192, now=2.0)

    assert window.ack(20, sent_seq=21, sent_bytes=8_300, now=2.5) == 0.5
    assert window.ack(21, sent_seq=21, sent_bytes=8_300, now=3.0) is None


def test_marks_are_due_once_for_so_many_bytes() -> None:
    window = AckWindow()

    window.mark(1, 200, now=0.0)

    assert window.next_mark == 200 + MARK_BYTES


def test_after_everything_is_acked_the_next_write_is_marked() -> None:
    window = AckWindow()
    window.mark(1, 200, now=0.0)

    window.ack(1, sent_seq=1, sent_bytes=200, now=0.1)

    assert window.next_mark == 0


def test_after_a_rewind_any_ack_covers_what_was_sent_above_it() -> None:
    window = AckWindow()
    for i in range(1, 4):
        window.mark(10 * i, MARK_BYTES * i, now=float(i))

    window.rewind(15)
    window.ack(16, sent_seq=18, sent_bytes=MARK_BYTES * 3 + 100, now=9.0)

    assert window.unacked_bytes(MARK_BYTES * 3 + 100) == 100
