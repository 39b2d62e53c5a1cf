"""Tells the state of a session when it is another one."""

from collections.abc import Callable

from relayrouter.events import StateEvent
from relayrouter.running import Running
from relayrouter.states import State


class StateTeller:
    def __init__(self, on_state: Callable[[StateEvent], None]) -> None:
        self._on_state = on_state
        self.told = StateEvent(State.CONNECTING, None, "")

    def tell(
        self,
        state: State,
        cause: str,
        running: Running | None = None,
        *,
        retry_in: float | None = None,
        url: str | None = None,
    ) -> None:
        """Every wait is told, as each has its own length."""
        told = StateEvent(
            state,
            running.kind if running is not None else None,
            cause,
            retry_in,
            running.url if running is not None else url,
        )
        is_first = self.told.url is None and told.url is not None
        changed = (told.state, told.channel) != (self.told.state, self.told.channel) or retry_in is not None
        self.told = told
        if changed or is_first:
            self._on_state(told)


__all__ = ["StateTeller"]
