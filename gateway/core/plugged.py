"""Where delivery and resume hooks meet connections: frames get their `ext`, a client that came gets its `state`.

Must never let a failing hook reach anything but the session's own connections. Called by encoders and door.
"""

import structlog

from gateway.core.connection import Connection
from gateway.core.hooks import DeliveryHooks, ResumeHooks
from gateway.core.local_session import LocalSession
from gateway.core.tasks import TaskOwner
from gateway.domain.wire.close_codes import CloseCode
from gateway.ports.hooks import DeliveredMessage, HookFailed, ResumedClient

log = structlog.get_logger()


class Tagging:
    """Delivery hooks in front of the encoder."""

    def __init__(self, hooks: DeliveryHooks) -> None:
        self._hooks = hooks

    def decorate(self, session: LocalSession, seq: int, frame: bytes) -> bytes:
        """The frame with its `ext`. When a hook fails that must not, nobody here gets the message: they are closed."""
        ref = session.ref
        try:
            return self._hooks.decorate(DeliveredMessage(ref.tenant, ref.session, seq, frame))
        except HookFailed as exc:
            log.warning("delivery_refused", hook=exc.name)
            for connection in list(session.connections):
                connection.begin_close(CloseCode.SERVER_FAULT, "hook")
            return frame


class StateKeeper:
    """Resume hooks, asked in a task of their own: no welcome waits for them."""

    def __init__(self, hooks: ResumeHooks, owner: TaskOwner) -> None:
        self._hooks = hooks
        self._owner = owner

    def ask(self, connection: Connection, resumed: str) -> None:
        self._owner.start("resume-hooks", self._bring(connection, resumed))

    async def _bring(self, connection: Connection, resumed: str) -> None:
        ref = connection.session.ref
        client = ResumedClient(
            ref.tenant,
            ref.session,
            connection.client,
            connection.principal.user,
            resumed,
            str(connection.cursor(connection.sent_seq)),
        )
        try:
            for payload in await self._hooks.states(client):
                connection.send_control(payload)
        except HookFailed as exc:
            log.warning("resume_refused", hook=exc.name)
            connection.begin_close(CloseCode.SERVER_FAULT, "hook")


__all__ = ["StateKeeper", "Tagging"]
