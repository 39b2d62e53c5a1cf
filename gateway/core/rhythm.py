"""How a run's tokens come, for connections that asked (`rhythm=1`): best effort, never in the log.

Told at most once a second by the gateway that ingests the run (core/runs/keeper.py), heard where its readers are.
"""

import msgspec

from gateway.core.hub import Hub
from gateway.core.pacing import takes_extras
from gateway.domain.streams.tempo import Rhythm
from gateway.domain.wire.bus import BusKind, encode_fields
from gateway.domain.wire.frames import encode_json
from gateway.domain.wire.ids import RunId, SessionKey

_decode = msgspec.json.Decoder(dict[str, object]).decode


def rhythm_notice(key: SessionKey, run: RunId, rhythm: Rhythm) -> bytes:
    """For every gateway that has connections of the session."""
    payload = {
        "kind": "rhythm",
        "run": run,
        "tokens_per_s": rhythm.tokens_per_second,
        "gap_ms": rhythm.gap_ms,
    }
    return encode_fields(BusKind.RHYTHM, key, encode_json(payload))


class RhythmListener:
    """One per gateway. Called from the bus: does not wait."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def on_rhythm(self, fields: list[bytes]) -> None:
        """Raises ValueError, IndexError when the notice is malformed."""
        session = self._hub.session(fields[0])
        if session is None:
            return
        try:
            payload = _decode(fields[1])
        except msgspec.DecodeError as exc:
            raise ValueError("a rhythm that is no JSON object") from exc
        max_bytes = self._hub.shared.limits.unsent_bytes
        for connection in session.connections:
            # One that does not read is spared: what it would see of the rhythm is long over.
            is_wanted = connection.wants_rhythm and connection.generation and takes_extras(connection)
            if is_wanted and connection.unsent_bytes <= max_bytes:
                connection.send_control(payload)


__all__ = ["RhythmListener", "rhythm_notice"]
