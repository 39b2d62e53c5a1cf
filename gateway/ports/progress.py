"""How far a run's input is, as an append stores it beside its messages."""

from typing import NamedTuple

from gateway.domain.wire.ids import GatewayId, RunId


class RunProgress(NamedTuple):
    """What an append stores beside its messages, so that any gateway can go on (design.md 6 "attach").

    `input_offset`: bytes of raw input that are wholly in the log (tokens: UTF-8 bytes of text given). `state`: opaque,
    at most 3 KiB (dialect, segmenter and what they hold). `gateway`: who holds the ingest request and is told of a
    stop; empty: nobody. `expected_offset`: compare-and-set; the append is refused (`Moved`) when the stored offset is
    another one.
    """

    run: RunId
    input_offset: int
    state: bytes
    gateway: GatewayId | None = None
    expected_offset: int | None = None


__all__ = ["RunProgress"]
