"""Where a claim puts its client, what its welcome says, and what an interrupt of before leaves it. Called by resume."""

from typing import Any, assert_never

from gateway.core.connection import Connection
from gateway.domain.sessions.position import Verdict, begin_at, judge, judge_unknown
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Claimed, Origin, Page


def place(claimed: Claimed, bare_seq: int | None) -> tuple[Verdict, str]:
    """The verdict, and `welcome.resumed`. `bare_seq`: the `last_received_seq` that the claim was made with."""
    state = claimed.log
    match claimed.origin:
        case Origin.LIVE:
            begins = state.head if claimed.kept_from is None else min(claimed.kept_from - 1, state.head)
            return begin_at(begins, state), "fresh"
        case Origin.START:
            return begin_at(0, state), "fresh"
        case Origin.CREATED:
            seq = claimed.cursor.seq if claimed.cursor is not None else bare_seq
            if seq is None:
                return begin_at(state.head, state), "fresh"
            verdict = judge_unknown(seq, state)
        case Origin.CURSOR | Origin.BARE_SEQ | Origin.ACKED:
            verdict = judge(claimed.cursor or state.cursor(bare_seq or 0), state)
        case _:
            assert_never(claimed.origin)
    return verdict, "gap" if verdict.has_gap else "snapshot" if verdict.is_below else "full"


def welcome_payload(
    connection: Connection, claimed: Claimed, start: int, resumed: str, gateway: GatewayId
) -> dict[str, Any]:
    """`start`: the position from which the next frame follows."""
    limits = connection.shared.limits
    channels = connection.shared.channels(connection.session.ref)
    payload = {
        "kind": "welcome",
        "protocol": 1,
        "connection": connection.id,
        "client": connection.client,
        "gateway": gateway,
        "prefer": connection.shared.prefer(connection.session.ref),
        "cursor": str(claimed.log.cursor(start)),
        "head": claimed.log.head,
        "resumed": resumed,
        "input_seq": claimed.input_seq,
        "heartbeat": connection.heartbeat_seconds,
        "capabilities": connection.capabilities.words,
        "limits": {
            "message_bytes": limits.client_message_bytes,
            "frame_bytes": limits.merged_frame_bytes,
            "unacked_bytes": limits.unacked_bytes,
        },
    }
    return payload if channels is None else payload | {"channels": channels}


def take_missed_cuts(connection: Connection, page: Page) -> bool:
    """Interrupts whose notice did not come: before anything of this page is written. True: there was one."""
    was_missed = False
    for client, (run, seen) in page.cuts:
        if client == connection.client and (connection.cuts is None or connection.cuts.of(run) is None):
            connection.cut(run, text_until=0 if seen is None else seen.at)
            was_missed = True
    return was_missed


def take_over_cuts(connection: Connection, claimed: Claimed) -> None:
    """One that begins anew is shown what it had seen of the run; to one that goes on nothing more of it is written."""
    for run, seen in claimed.cuts:
        if seen is None:
            connection.cut(run)
        else:
            is_fresh = claimed.origin in (Origin.START, Origin.CREATED)
            connection.cut(run, above_seq=seen.seq if is_fresh else 0, text_until=seen.at)


__all__ = ["place", "take_missed_cuts", "take_over_cuts", "welcome_payload"]
