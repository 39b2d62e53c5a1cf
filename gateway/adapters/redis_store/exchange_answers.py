"""What the scripts of exchange and order answer, as the port's values. Pure; shapes: at the top of each script."""

from collections.abc import Sequence
from typing import Any, Final

from gateway.adapters.redis_store.answers import REFUSALS
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import GatewayId
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    AskId,
    AskInfo,
    AskRefusal,
    AskRefused,
    AskStatus,
    Expected,
    InputAccepted,
    InputRefusal,
    InputRefused,
    ItemResult,
    SweepResult,
)

NOT_FOUND: Final = SweepResult(False, None, False, None, 0, (), ())
_STATUS: Final = {
    b"o": AskStatus.OPEN,
    b"a": AskStatus.ANSWERED,
    b"e": AskStatus.EXPIRED,
    b"c": AskStatus.CANCELLED,
}
_OFFER_REFUSALS: Final = {**REFUSALS, b"l": AppendRefusal.LATE}


def read_offer(answer: bytes) -> AppendOutcome:
    kind, *fields = answer.split(b"\n")
    if kind == b"a":
        line, head, live, gaps, window_ms, kept_until_ms, words, *gateways = fields
        return Appended(
            results=tuple([_result(word) for word in words.split()]),
            line=Line(line),
            head=int(head),
            live=live == b"1",
            gateways=_gateways(gateways),
            window_ms=int(window_ms) if window_ms else None,
            gaps=int(gaps),
            kept_until_ms=int(kept_until_ms) if kept_until_ms else None,
        )
    if kind == b"e":
        return Expected(int(fields[0]))
    return AppendRefused(_OFFER_REFUSALS[kind], int(fields[0]) if fields else None)


def _result(word: bytes) -> ItemResult:
    mark, rest = word[:1], word[1:]
    if mark == b"!":
        return ItemResult(None, False, rest.decode())
    if mark == b"?":
        return ItemResult(None, False, pending=True)
    return ItemResult(int(rest) if rest else None, mark == b"=", late=mark == b"~")


def read_input(answer: bytes, number: int) -> InputAccepted | InputRefused:
    kind, *fields = answer.split(b"\n")
    if kind == b"r":
        reason, expected = fields
        return InputRefused(InputRefusal(reason.decode()), int(expected))
    line, head, seq, *gateways = fields
    return InputAccepted(number, int(seq), kind == b"=", Line(line), int(head), _gateways(gateways))


def read_ask(answer: Sequence[Any], ask: AskId) -> AskInfo | AskRefused:
    kind, *fields = answer[0].split(b"\n")
    if kind == b"r":
        return AskRefused(AskRefusal(fields[0].decode()))
    status, seq, expires_in_ms, is_new, line, head, live, *gateways = fields
    return AskInfo(
        ask=ask,
        status=_STATUS[status],
        seq=int(seq),
        expires_in_ms=int(expires_in_ms),
        record=answer[1],
        frame=answer[2],
        resolution=answer[3],
        is_new=is_new == b"1",
        line=Line(line),
        head=int(head),
        gateways=_gateways(gateways),
        live=live == b"1",
    )


def read_asked(answer: Sequence[Any], ask: AskId) -> AskInfo:
    status, seq, expires_in_ms = answer[0].split(b"\n")
    return AskInfo(ask, _STATUS[status], int(seq), int(expires_in_ms), answer[1], answer[2], answer[3], is_new=False)


def read_swept(answer: bytes) -> SweepResult:
    _, line, head, has_outbox, next_in_ms, events, *gateways = answer.split(b"\n")
    return SweepResult(
        found=True,
        next_in_ms=int(next_in_ms) if next_in_ms else None,
        has_outbox=has_outbox == b"1",
        line=Line(line),
        head=int(head),
        gateways=_gateways(gateways),
        events=tuple(events.decode().split()),
    )


def _gateways(names: Sequence[bytes]) -> tuple[GatewayId, ...]:
    return tuple([GatewayId(name.decode()) for name in names])


__all__ = ["NOT_FOUND", "read_ask", "read_asked", "read_input", "read_offer", "read_swept"]
