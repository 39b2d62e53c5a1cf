"""Serving without authentication is never quiet: settings refuse it where others could reach it, this says it."""

import structlog

from gateway.settings import AuthSettings, ServerSettings

log = structlog.get_logger()


def warn_if_open(server: ServerSettings, auth: AuthSettings) -> bool:
    """True, after a warning, when nobody is asked who they are. Called once, by serve."""
    if auth.mode != "none":
        return False
    log.warning("serving_without_authentication", host=server.host, everybody_may="read and write every session")
    return True


__all__ = ["warn_if_open"]
