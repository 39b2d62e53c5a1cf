"""What the scripts answer, as the port's values. Pure; the shapes are at the top of each script."""

from collections.abc import Sequence
from typing import Any

from gateway.domain.sessions.log_state import Fork, LogState
from gateway.domain.wire.cursor import Cursor, Line
from gateway.domain.wire.entry import LogEntry
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, UserId
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    Claimed,
    ClaimOutcome,
    ClaimRefusal,
    ClaimRefused,
    Expected,
    HeadInfo,
    ItemResult,
    Origin,
    Page,
    Renewal,
    Renewed,
    RenewResult,
    RouteInfo,
    SessionInfo,
)


class UnexpectedAnswer(Exception):
    """A script answered what its header does not name: a fault of ours."""


def read_append(answer: bytes, count: int) -> AppendOutcome:
    """Everything but `m`, which the store handles itself. `count`: messages of the call."""
    kind = answer[:1]
    if kind == b"a":
        _, line, head, live, answers, *gateways = answer.split(b"\n")
        return Appended(
            tuple(_read_results(answers, count)),
            Line(line),
            int(head),
            live == b"1",
            tuple(GatewayId(gateway.decode()) for gateway in gateways),
        )
    if kind == b"e":
        return Expected(int(answer[2:]))
    if kind == b"x":
        return AppendRefused(AppendRefusal.RUN_ENDED, int(answer[2:]))
    if kind == b"u":
        return AppendRefused(AppendRefusal.PRODUCER_UNKNOWN)
    if kind == b"f":
        return AppendRefused(AppendRefusal.FENCED)
    raise UnexpectedAnswer(f"append: {answer[:40]!r}")


def _read_results(answers: bytes, count: int) -> list[ItemResult]:
    results: list[ItemResult] = []
    for word in answers.split():
        mark, rest = word[:1], word[1:]
        if mark == b"+":
            first = int(rest)
            results += [ItemResult(first + place, False) for place in range(count - len(results))]
        elif mark == b"=":
            results.append(ItemResult(int(rest) if rest else None, True))
        else:
            results.append(ItemResult(None, True, rest.decode()))
    return results


def read_log_state(fields: Sequence[bytes]) -> LogState:
    epoch, forks, head, lost = fields
    return LogState(epoch.decode(), tuple(_read_fork(line) for line in forks.split(b"\n")), int(head), int(lost))


def _read_fork(line: bytes) -> Fork:
    ident, base, *runs = line.split(b"\t")
    lengths = {runs[place].decode(): int(runs[place + 1]) for place in range(0, len(runs), 2)}
    return Fork(ident.decode(), int(base), lengths)


def read_page(answer: Sequence[Any] | None) -> Page | None:
    return None if answer is None else _page(read_log_state(answer[0]), answer[1])


def _page(log: LogState, entries: Sequence[Sequence[bytes]]) -> Page:
    return Page(
        log,
        tuple(
            LogEntry(int(seq), cls, run, int(at) if at else None, int(text_bytes or 0), frame)
            for seq, cls, run, at, text_bytes, frame in entries
        ),
    )


def read_claim(answer: Sequence[Any], given: Cursor | None) -> ClaimOutcome:
    if answer[0] != b"ok":
        return ClaimRefused(ClaimRefusal(answer[0].decode()), int(answer[1]))
    _, _, generation, state, origin, found, input_seq, has_page, entries = answer
    log = read_log_state(state)
    return Claimed(
        generation=int(generation),
        log=log,
        origin=Origin(origin.decode()),
        cursor=Cursor.parse(found.decode()) if found else given,
        page=_page(log, entries) if has_page else None,
        input_seq=int(input_seq),
    )


def read_renewed(answer: Sequence[bytes]) -> Renewed:
    results = tuple(
        RenewResult(Renewal(answer[place].decode()), int(answer[place + 1])) for place in range(3, len(answer), 2)
    )
    return Renewed(Line(answer[1]) if answer[1] else None, int(answer[2]), results)


def read_head(answer: Sequence[Any]) -> HeadInfo:
    return HeadInfo(Line(answer[0]) if answer[0] else None, int(answer[1]), answer[2] == 1)


def read_info(answer: Any) -> SessionInfo | None:
    if answer is None:
        return None
    if answer == b"deleted":
        return SessionInfo(LogState("", (Fork("", 0),), 0, 0), None, 1, 0, 0, (), is_deleted=True)
    state, owner, first_seq, retained_bytes, timestamp, now_ms, *routes = answer
    return SessionInfo(
        log=read_log_state(state),
        owner=UserId(owner.decode()) if owner else None,
        first_seq=int(first_seq),
        retained_bytes=int(retained_bytes),
        last_timestamp_ms=int(timestamp),
        routes=tuple(
            _route(routes[place], routes[place + 1], routes[place + 2], int(now_ms))
            for place in range(0, len(routes), 3)
        ),
    )


def _route(client: bytes, route: bytes, cursor: bytes, now_ms: int) -> RouteInfo:
    gateway, connection, generation, lease, *_ = route.decode().split("\t")
    return RouteInfo(
        ClientId(client.decode()),
        GatewayId(gateway),
        ConnectionId(connection),
        int(generation),
        int(lease) - now_ms,
        cursor.decode() or None,
    )


__all__ = [
    "UnexpectedAnswer",
    "read_append",
    "read_claim",
    "read_head",
    "read_info",
    "read_log_state",
    "read_page",
    "read_renewed",
]
