"""Merges the text of connections on a poor network: each is written to once in 250 ms, none of it later (A11).

Who takes several messages in a frame gets a turn as one: at most four frames a second, whatever runs and kinds take
turns in it, of up to a page (128 KiB) each. Others get four a second for a run whose text comes in one piece.

From memory, not from the log: when a whole network is slow, four reads a second for each of its clients would fall on
Redis, which has no part in it. Only what the memory lacks (a hole, a fork, a cut, too much) is read from the log, in
the way of every connection that is behind. Order, contiguity and positions are those of a live connection.
"""

import asyncio
from typing import Final

from gateway.core.connection import Connection
from gateway.core.tail import Tail
from gateway.domain.measures import Measures
from gateway.domain.sessions.states import State, Step, next_state
from gateway.domain.streams.merge import merge
from gateway.ports import Clock

TURN_SECONDS: Final = 0.25
SLOTS: Final = 5
"""A connection has its turn in one of them."""


class Coalescer:
    """One per gateway. `run` for ever."""

    def __init__(self, measures: Measures, clock: Clock) -> None:
        self._measures = measures
        self._clock = clock
        self._slots: tuple[set[Connection], ...] = tuple(set() for _ in range(SLOTS))
        self._slot = 0
        self._some = asyncio.Event()

    def start(self, connection: Connection) -> None:
        """From here on a live connection is given its text merged. For others: nothing happens."""
        if connection.state is not State.LIVE:
            return
        connection.state = next_state(connection.state, Step.SLOWED)
        connection.is_live = False
        connection.held = Tail(connection.shared.limits.held_bytes)
        self._slots[hash(connection.id) % SLOTS].add(connection)
        self._some.set()

    def stop(self, connection: Connection) -> None:
        """Live again, with everything that waited. For others than those whose text is merged: nothing happens."""
        self._turn(connection)
        if connection.state is not State.COALESCING:
            return
        if connection.held is None or connection.held.frames or self._is_short(connection):
            connection.fall_behind()  # something is missing: it comes from the log
            return
        connection.held = None
        connection.state = next_state(connection.state, Step.RECOVERED)
        connection.is_live = True

    async def run(self) -> None:
        due = self._clock()
        while True:
            await self._some.wait()
            await asyncio.sleep(max(0.0, due - self._clock()))
            # A late turn is not made up for: two would follow each other at once.
            due = max(due, self._clock()) + TURN_SECONDS / SLOTS
            self.tick()
            if not any(self._slots):
                self._some.clear()

    def tick(self) -> None:
        """The turns of one slot."""
        self._slot = (self._slot + 1) % SLOTS
        slot = self._slots[self._slot]
        for connection in list(slot):
            self._turn(connection)
            if connection.state is not State.COALESCING:
                slot.discard(connection)

    def _turn(self, connection: Connection) -> None:
        if connection.state is not State.COALESCING:
            return
        session, tail = connection.session, connection.held
        is_lost = connection.is_to_be_rebuilt or session.line != connection.line
        entries = tail.take(connection.line, connection.sent_seq) if isinstance(tail, Tail) and not is_lost else None
        if entries is None or not isinstance(tail, Tail):
            connection.fall_behind()
            return
        if entries:
            messages = []
            for _, seq, frame in merge(entries, connection.shared.limits.merged_frame_bytes):
                messages.append(connection.shared.decorate(session, seq, frame))
                connection.sent_seq = seq
            if connection.is_ending:
                return  # a hook failed
            self._measures.bytes_delivered += connection.write_messages(messages)
            self._measures.messages_delivered += len(messages)
            self._measures.coalesced_messages += len(entries) - len(messages)
        if self._is_over_window(connection):
            connection.lag()
        elif self._is_short(connection) and tail.is_short_again(connection.sent_seq):
            connection.fall_behind()

    def _is_short(self, connection: Connection) -> bool:
        return connection.session.head_seen > connection.sent_seq

    def _is_over_window(self, connection: Connection) -> bool:
        limits = connection.shared.limits
        connection.check_window(connection.written_at)
        return connection.unacked_bytes > limits.unacked_bytes or connection.unsent_bytes > limits.unsent_bytes


__all__ = ["SLOTS", "TURN_SECONDS", "Coalescer"]
