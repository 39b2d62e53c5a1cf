"""What may be limited, by name: the same names in settings, refusals, metrics and docs."""

from dataclasses import dataclass, fields
from enum import StrEnum


class Quota(StrEnum):
    APPENDS = "appends_per_second"
    BYTES = "bytes_per_second"
    SESSIONS = "sessions"
    CONNECTIONS = "connections"
    SESSION_APPENDS = "session_appends_per_second"
    SESSION_BYTES = "session_bytes_per_second"


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one tenant over all gateways, and of each of its sessions. None: not limited."""

    appends_per_second: float | None = None
    bytes_per_second: float | None = None
    sessions: int | None = None
    connections: int | None = None
    session_appends_per_second: float | None = None
    session_bytes_per_second: float | None = None

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, field.name) is None for field in fields(self))

    @property
    def limits_appends(self) -> bool:
        return self.appends_per_second is not None or self.bytes_per_second is not None or self.limits_session

    @property
    def limits_session(self) -> bool:
        return self.session_appends_per_second is not None or self.session_bytes_per_second is not None

    @property
    def limits_presence(self) -> bool:
        return self.sessions is not None or self.connections is not None


__all__ = ["Limits", "Quota"]
