"""How a run's input is read and cut: chosen when it starts, kept in its `run_start`, and the same for who goes on.

And what a producer asks for: a stream, or single tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gateway.domain.access.principal import Principal
from gateway.domain.streams.dialects import DialectName
from gateway.domain.streams.segment import SegmentMode, SegmentOptions
from gateway.domain.wire.ids import RunId, SessionRef, UserId

TOKENS_DIALECT: Final = "tokens"
"""Stands in `run_start.dialect` when the text comes token by token in requests of its own."""

_DEFAULT = SegmentOptions()


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`dialect` None: no stream, but single tokens (`POST .../tokens`)."""

    dialect: DialectName | None = DialectName.TEXT
    segment: SegmentOptions = _DEFAULT

    def start_payload(self, run: str) -> dict[str, Any]:
        """The `run_start` that `options_of` reads. What has its default is left out, but for the mode."""
        segment: dict[str, Any] = {"mode": self.segment.mode.value}
        for name in _SEGMENT_FIELDS:
            value = getattr(self.segment, name)
            if value != getattr(_DEFAULT, name):
                segment[name] = value
        dialect = TOKENS_DIALECT if self.dialect is None else self.dialect.value
        return {"kind": "run_start", "run": run, "dialect": dialect, "segment": segment}

    @property
    def thinking_segment(self) -> SegmentOptions:
        """For the reasoning, which has no typed segments."""
        if self.segment.mode is not SegmentMode.STRUCTURE:
            return self.segment
        return SegmentOptions(
            SegmentMode.SENTENCE,
            max_delay_ms=self.segment.max_delay_ms,
            max_bytes=self.segment.max_bytes,
            first_immediately=self.segment.first_immediately,
        )


_SEGMENT_FIELDS = ("tokens", "max_delay_ms", "max_bytes", "first_immediately", "pattern")


class _Start(msgspec.Struct):
    dialect: str | None = None
    segment: dict[str, Any] | None = None


_start_decoder = msgspec.json.Decoder(_Start)


def options_of(start_body: bytes) -> RunOptions | None:
    """From a whole `run_start` payload; None when it was not made here, e.g. by a plain push."""
    try:
        start = _start_decoder.decode(start_body)
        if start.dialect is None or start.segment is None:
            return None
        dialect = None if start.dialect == TOKENS_DIALECT else DialectName(start.dialect)
        return RunOptions(dialect, _segment_of(start.segment))
    except (ValueError, TypeError, msgspec.DecodeError):
        return None


@dataclass(frozen=True, slots=True)
class AttachAt:
    """Go on with an open run: `epoch` must be the one that writes now; the body begins at `offset` of the input."""

    epoch: int
    offset: int | None = None
    """None: where the log is."""


@dataclass(frozen=True, slots=True)
class StreamRequest:
    session: SessionRef
    run: RunId
    options: RunOptions
    attach: AttachAt | None = None
    owner: UserId | None = None
    viewers_grace_seconds: float | None = None
    """Tell the agent when nobody was connected for so long; None: do not."""
    traceparent: str | None = None
    principal: Principal | None = None
    """Who streams: it ends when their token is revoked. None: nobody can revoke it."""


@dataclass(frozen=True, slots=True)
class TokensRequest:
    """`text` goes to the answer or, with `is_thinking`, to the reasoning. `options` count when it starts the run."""

    session: SessionRef
    run: RunId
    options: RunOptions
    text: str
    is_thinking: bool = False
    count: int = 1
    """Tokens that `text` was given as."""
    offset: int | None = None
    """UTF-8 bytes given before; refused when it is another number. None: behind whatever is there."""
    epoch: int | None = None
    owner: UserId | None = None


def _segment_of(fields: Mapping[str, Any]) -> SegmentOptions:
    return SegmentOptions(**{name: value for name, value in fields.items() if name in ("mode", *_SEGMENT_FIELDS)})


__all__ = ["TOKENS_DIALECT", "AttachAt", "RunOptions", "StreamRequest", "TokensRequest", "options_of"]
