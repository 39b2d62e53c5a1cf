"""What `run_end` says, and what the producer is told when its run has ended."""

from typing import Any

from gateway.core.runs.appends import RunAppends
from gateway.core.runs.pipeline import Pipeline
from gateway.domain.streams.pieces import StreamEnd
from gateway.ports import Appended


def end_fields(pipeline: Pipeline, end: StreamEnd, max_known_bytes: int) -> dict[str, Any]:
    """Of `run_end`, but for kind and run."""
    fields: dict[str, Any] = {"reason": end.reason.value}
    if end.finish_reason is not None:
        fields["finish_reason"] = end.finish_reason
    if end.usage is not None:
        fields["usage"] = end.usage
    if end.problem is not None:
        fields["problem"] = end.problem
    if pipeline.replaced:
        fields["replaced"] = pipeline.replaced
    reasoning = pipeline.thinking.count.fields(max_known_bytes) | {"duration_ms": pipeline.thinking_ms}
    return fields | pipeline.text.count.fields(max_known_bytes) | {"reasoning": reasoning}


def placed(appended: Appended) -> dict[str, Any]:
    """Where the last message is."""
    seq = appended.results[-1].seq if appended.results else None
    return {
        "seq": seq or appended.head,
        "cursor": f"{appended.line.decode()}.{appended.head}",
        "live": appended.live,
    }


def report(appends: RunAppends, pipeline: Pipeline, end: StreamEnd, max_known_bytes: int) -> dict[str, Any]:
    """The answer to a stream that came to its end."""
    fields: dict[str, Any] = {
        "run": appends.run,
        "epoch": appends.epoch,
        "reason": end.reason.value,
        "finish_reason": end.finish_reason,
        "usage": end.usage,
        **pipeline.text.count.fields(max_known_bytes),
        "reasoning": pipeline.thinking.count.fields(max_known_bytes) | {"duration_ms": pipeline.thinking_ms},
        "input_bytes": pipeline.fed_bytes,
        "replaced": pipeline.replaced,
    }
    if end.problem is not None:
        fields["problem"] = end.problem
    return fields | ({} if appends.last is None else placed(appends.last))


__all__ = ["end_fields", "placed", "report"]
