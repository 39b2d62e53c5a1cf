"""What the scripts answer, as the port's values. Pure; the shapes are at the top of each script."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from gateway.domain.sessions.log_state import Fork, LogState
from gateway.domain.wire.capabilities import Capabilities
from gateway.domain.wire.cursor import Cursor, Line
from gateway.domain.wire.entry import LogEntry
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, RunId, UserId
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    Claimed,
    ClaimOutcome,
    ClaimRefusal,
    ClaimRefused,
    Cut,
    Expected,
    HeadInfo,
    ItemResult,
    Moved,
    Origin,
    Page,
    Renewal,
    Renewed,
    RenewResult,
    RouteInfo,
    Seen,
    SessionInfo,
)

REFUSALS: Final = {
    b"u": AppendRefusal.PRODUCER_UNKNOWN,
    b"f": AppendRefusal.FENCED,
    b"d": AppendRefusal.DUE_STALE,
    b"x": AppendRefusal.RUN_ENDED,
    b"w": AppendRefusal.HAS_WRITER,
    b"n": AppendRefusal.TOO_MANY_RUNS,
}
_RENEWALS = {b"k": Renewal.OK, b"l": Renewal.LOST, b"s": Renewal.SUPERSEDED}


class Entered(NamedTuple):
    """`server` is its incarnation when the call named another one, else empty."""

    state: bytes
    server: bytes
    line: Line
    producer_epoch: int | None


def read_entered(answer: bytes) -> Entered:
    state, server, line, epoch = answer.split(b"\n")
    return Entered(state, server, Line(line), int(epoch) if epoch else None)


def read_append(answer: bytes, count: int) -> AppendOutcome:
    """All but `m`. `count`: the call's messages."""
    kind, *fields = answer.split(b"\n")
    if kind == b"a":
        line, head, live, words, *gateways = fields
        names = tuple([_gateway(name) for name in gateways])
        return Appended(_read_results(words, count), Line(line), int(head), live == b"1", names)
    if kind == b"e":
        return Expected(int(fields[0]))
    if kind == b"v":
        return Moved(int(fields[0]))
    return AppendRefused(REFUSALS[kind], int(fields[0]) if fields else None)


@lru_cache(maxsize=256)
def _gateway(name: bytes) -> GatewayId:
    return GatewayId(name.decode())


def _read_results(words: bytes, count: int) -> tuple[ItemResult, ...]:
    if count == 1 and words[:1] == b"+" and b" " not in words:
        return (ItemResult(int(words[1:]), False),)
    results: list[ItemResult] = []
    for word in words.split():
        mark, rest = word[:1], word[1:]
        if mark == b"+":
            first = int(rest)
            results += [ItemResult(first + place, False) for place in range(count - len(results))]
        elif mark == b"=":
            results.append(ItemResult(int(rest) if rest else None, True))
        else:
            results.append(ItemResult(None, False, rest.decode()))
    return tuple(results)


def read_page(answer: Sequence[Any]) -> Page | None:
    """All but `s`."""
    kind, *fields = answer[0].split(b"\n")
    if kind == b"m":
        return None
    epoch, head, lost, void = fields
    cuts = answer[3]
    return Page(
        read_log(epoch, answer[1], head, lost, void),
        _entries(answer[2]),
        tuple(
            (ClientId(cuts[place + 1].decode()), _cut(cuts[place], *cuts[place + 2 : place + 4]))
            for place in range(0, len(cuts), 4)
        ),
    )


def read_claim(answer: Sequence[Any]) -> tuple[ClaimOutcome, bytes]:
    """With the server's incarnation when the call named another one, else empty."""
    kind, server, *fields = answer[0].split(b"\n")
    if kind == b"r":
        reason, after_ms = fields
        return ClaimRefused(ClaimRefusal(reason.decode()), int(after_ms)), server
    generation, epoch, head, lost, void, origin, line, seq, input_seq, kept_from = fields
    _, forks, entries, cuts, asks = answer
    log = read_log(epoch, forks, head, lost, void)
    claimed = Claimed(
        generation=int(generation),
        log=log,
        origin=Origin(origin.decode()),
        cursor=Cursor.parse(f"{line.decode()}.{seq.decode()}") if line else None,
        page=None if entries is None else Page(log, _entries(entries)),
        input_seq=int(input_seq),
        cuts=tuple(_cut(*cuts[place : place + 3]) for place in range(0, len(cuts), 3)),
        asks=tuple(asks),
        kept_from=int(kept_from) if kept_from else None,
    )
    return claimed, server


def read_renewed(answer: bytes, generations: Sequence[int]) -> tuple[Renewed, bytes]:
    """`generations`: those of the call. With the incarnation of the server when the call named another one."""
    server, line, head, *words = answer.split(b"\n")
    results = tuple(
        RenewResult(_RENEWALS[word[:1]], int(word[2:]) if word[:1] == b"k" else generation)
        for word, generation in zip(words, generations, strict=True)
    )
    return Renewed(Line(line) if line else None, _seen_head(head), results), server


def read_head(answer: bytes) -> HeadInfo:
    line, head, is_stale = answer.split(b"\n")
    return HeadInfo(Line(line) if line else None, _seen_head(head), is_stale == b"1")


def _seen_head(told: bytes) -> int:
    """Without what is held above it (lib_visible.lua)."""
    return int(told.partition(b" ")[0])


def read_info(answer: Sequence[Any] | None) -> SessionInfo | None:
    if answer is None:
        return None
    fields, forks, owner, routes = answer
    state, epoch, head, lost, void, first_seq, retained_bytes, timestamp_ms = fields.split(b"\n")
    return SessionInfo(
        log=read_log(epoch, forks, head, lost, void),
        owner=UserId(owner.decode()) if owner else None,
        first_seq=int(first_seq),
        retained_bytes=int(retained_bytes),
        last_timestamp_ms=int(timestamp_ms),
        routes=tuple(_route(routes[place : place + 8]) for place in range(0, len(routes), 8)),
        is_deleted=state == b"deleted",
    )


def _route(values: Sequence[Any]) -> RouteInfo:
    client, gateway, connection, generation, lease_ms, cursor, capabilities, quality = values
    return RouteInfo(
        ClientId(client.decode()),
        GatewayId(gateway.decode()),
        ConnectionId(connection.decode()),
        int(generation),
        int(lease_ms),
        cursor.decode() or None,
        Capabilities.read(capabilities.decode()),
        quality.decode(),
    )


def _cut(run: bytes, seq: bytes, at: bytes) -> Cut:
    return Cut(RunId(run.decode()), Seen(int(seq), int(at)) if seq else None)


def read_log(epoch: bytes, forks: bytes, head: bytes, lost: bytes, void: bytes) -> LogState:
    stretches = tuple([_fork(line) for line in forks.split(b"\n")])
    seen, _, held = head.partition(b" ")
    return LogState(epoch.decode(), stretches, int(seen), int(lost), int(void), int(held or 0))


def _fork(line: bytes) -> Fork:
    ident, base, *runs = line.split(b"\t")
    texts: dict[str, int] = {}
    thinking: dict[str, int] = {}
    for place in range(0, len(runs), 2):
        run, (text, _, thought) = runs[place].decode(), runs[place + 1].partition(b" ")
        texts[run] = int(text)
        if thought:
            thinking[run] = int(thought)
    return Fork(ident.decode(), int(base), texts, thinking)


def _entries(stored: Sequence[Sequence[Any]]) -> tuple[LogEntry, ...]:
    """As XRANGE gives them (lib_page.lua): a header and the frame."""
    entries = []
    for ident, (_, header, _, frame) in stored:
        cls, *more = header.split(b" ", 5)
        if len(more) == 1:
            entries.append(LogEntry(int(ident[:-2]), cls, b"", None, 0, frame))
        else:
            _, at, text_bytes, _, run = more
            entries.append(LogEntry(int(ident[:-2]), cls, run, int(at) if at else None, int(text_bytes), frame))
    return tuple(entries)


__all__ = [
    "Entered",
    "read_append",
    "read_claim",
    "read_entered",
    "read_head",
    "read_info",
    "read_log",
    "read_page",
    "read_renewed",
]
