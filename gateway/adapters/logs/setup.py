"""Sets up structlog and the standard library's logging alike, once per process, on standard error."""

import logging
import sys
from typing import Any, TextIO

import structlog

from gateway.adapters.logs.redact import redact
from gateway.settings import LogSettings

_LIBRARIES = ("aiohttp", "asyncio", "redis")
"""They may speak only of trouble: at `debug` they would print what they receive."""


def set_up_logs(settings: LogSettings, stream: TextIO | None = None) -> None:
    """From here on every log line of ours and of libraries goes to `stream` (default: standard error), redacted."""
    out = sys.stderr if stream is None else stream
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        redact,
    ]
    renderer = _renderer(settings, out)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def _renderer(settings: LogSettings, out: TextIO) -> Any:
    if settings.format == "json":
        return structlog.processors.JSONRenderer(default=str)
    return structlog.dev.ConsoleRenderer(colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback)


__all__ = ["set_up_logs"]
