"""What the scripts of runs answer, as the port's values. Pure; the shapes are at the top of each script."""

from collections.abc import Sequence
from typing import Any

from gateway.adapters.redis_store.answers import read_log
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import GatewayId, RunId
from gateway.ports import (
    KeptItem,
    RunBrief,
    RunInfo,
    RunRefusal,
    RunRefused,
    RunWriter,
    SnapshotPlan,
    Stopped,
)

_REFUSALS = {
    b"n": RunRefusal.NOT_FOUND,
    b"x": RunRefusal.EXISTS,
    b"e": RunRefusal.ENDED,
    b"d": RunRefusal.DUE_STALE,
}


def read_refused(kind: bytes, *end_body: bytes) -> RunRefused:
    return RunRefused(_REFUSALS[kind], *end_body)


def read_writer(answer: Sequence[Any]) -> RunWriter | RunRefused:
    if answer[0] != b"o":
        return read_refused(*answer)
    _, fields, state, _ = answer
    line, head, epoch, is_new, offset, number, text, thinking, live = fields.split(b"\n")
    return RunWriter(
        epoch=int(epoch),
        is_new=is_new == b"1",
        line=Line(line),
        head=int(head),
        input_offset=int(offset),
        last_number=int(number),
        state=state,
        text_bytes=int(text),
        thinking_bytes=int(thinking),
        live=live == b"1",
    )


def read_runs(answer: Sequence[Any]) -> list[RunInfo]:
    """Those that are retained."""
    now_ms = int(answer[0])
    infos = [_run(now_ms, *answer[place : place + 5]) for place in range(1, len(answer), 5)]
    return [info for info in infos if info is not None]


def _run(
    now_ms: int, name: bytes, record: bytes, progress: bytes | None, start: bytes | None, end: bytes | None
) -> RunInfo | None:
    mode, *numbers = record.split(b" ")
    last, lease, text, _, text_kept, thinking, _, thinking_kept, epoch, first = map(int, numbers)
    is_open = mode == b"o"
    if not is_open and lease <= now_ms:
        return None
    place, _, opaque = (progress or b"0 0 \n").partition(b"\n")
    offset, number, gateway = place.split(b" ", 2)
    return RunInfo(
        run=RunId(name.decode()),
        is_open=is_open,
        epoch=epoch,
        text_bytes=text,
        thinking_bytes=thinking,
        kept_text_bytes=text_kept,
        kept_thinking_bytes=thinking_kept,
        first_seq=first,
        last_seq=last,
        lease_ms=max(0, lease - now_ms) if is_open else 0,
        input_offset=int(offset),
        last_number=int(number),
        state=opaque,
        gateway=GatewayId(gateway.decode()) if gateway else None,
        start_body=start or b"",
        end_body=end or b"",
    )


def read_stopped(answer: Sequence[Any]) -> Stopped | RunRefused:
    if answer[0] != b"s":
        return read_refused(*answer)
    _, fields, end_body, writer, clients, gateways = answer
    line, head, is_new, end_seq = fields.split(b"\n")
    return Stopped(
        is_new=is_new == b"1",
        end_seq=int(end_seq),
        head=int(head),
        line=Line(line),
        end_body=end_body,
        writer_gateway=GatewayId(writer.decode()) if writer else None,
        client_gateways=_names(clients),
        gateways=_names(gateways),
    )


def _names(lines: bytes) -> tuple[GatewayId, ...]:
    return tuple(GatewayId(name.decode()) for name in lines.split(b"\n") if name)


def read_snapshot(answer: Sequence[Any]) -> SnapshotPlan | None:
    """All but `s`."""
    kind, *fields = answer[0].split(b"\n")
    if kind == b"m":
        return None
    epoch, head, lost, void = fields
    _, forks, briefs, kept = answer
    return SnapshotPlan(
        read_log(epoch, forks, head, lost, void),
        tuple(_brief(*briefs[place : place + 3]) for place in range(0, len(briefs), 3)),
        tuple(KeptItem(int(kept[place]), kept[place + 1]) for place in range(0, len(kept), 2)),
    )


def _brief(fields: bytes, start: bytes, end: bytes) -> RunBrief:
    name, mode, *numbers = fields.split(b"\n")
    text, text_kept, thinking, thinking_kept, last = map(int, numbers)
    return RunBrief(RunId(name.decode()), mode == b"o", text, text_kept, thinking, thinking_kept, last, start, end)


__all__ = ["read_refused", "read_runs", "read_snapshot", "read_stopped", "read_writer"]
