"""Writes a page of the log to one connection: cut where its client interrupted, merged, holes announced (G1).

Must never write past the room that the page was read for. Called by resume.
"""

from collections.abc import Iterable

from gateway.core.connection import Connection
from gateway.domain.measures import Measures
from gateway.domain.sessions.position import hole
from gateway.domain.streams.cuts import CutStretch
from gateway.domain.streams.merge import merge
from gateway.domain.wire.entry import LogEntry
from gateway.domain.wire.ws_frames import encode_text
from gateway.ports import Page


class Pages:
    """One per gateway."""

    def __init__(self, merged_frame_bytes: int, measures: Measures) -> None:
        self._frame_bytes = merged_frame_bytes
        self._measures = measures

    def write(self, connection: Connection, page: Page) -> None:
        """A page that began at or below the connection's position, and what is missing in it."""
        position = connection.read_seq
        self.write_entries(connection, page)
        if connection.read_seq >= page.log.head or not page.entries:
            write_pending_cut(connection)
        if not page.entries and position < page.log.head:
            connection.announce_gap(hole(position, page.log.head), page.log)

    def write_entries(self, connection: Connection, page: Page) -> None:
        position = connection.read_seq
        entries = [entry for entry in page.entries if entry.seq > position]
        messages: list[bytes] = []
        whole: Iterable[LogEntry | CutStretch] = entries if connection.cuts is None else connection.cuts.apply(entries)
        for first_seq, seq, frame in merge(whole, self._frame_bytes):
            if first_seq != connection.sent_seq + 1:
                connection.write_messages(messages)
                messages.clear()
                connection.announce_gap(hole(connection.sent_seq, first_seq - 1), page.log)
            messages.append(connection.shared.decorate(connection.session, seq, frame))
            connection.sent_seq = seq
        if messages:
            connection.write_messages(messages)
            self._measures.messages_delivered += len(messages)
        self._measures.replayed_messages += len(entries)
        connection.check_window(connection.written_at)


def write_pending_cut(connection: Connection) -> None:
    """What came of a cut stretch so far is all of it."""
    for cut in connection.cuts.take_pending() if connection.cuts is not None else ():
        connection.write(encode_text(cut.frame))
        connection.sent_seq = cut.seq


__all__ = ["Pages", "write_pending_cut"]
