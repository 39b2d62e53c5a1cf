"""Who may: decided from the token alone, before Redis is asked (protocol.md 2). Raises RelayError.

A session that the token does not reach answers exactly like one that does not exist (G11); a missing scope is a
property of the token only and may be named.
"""

from gateway.domain.access.principal import Principal, Scope
from gateway.domain.wire.errors import ErrorCode, RelayError


def not_found() -> RelayError:
    """The one answer for: no such session, not yours, deleted."""
    return RelayError(ErrorCode.NOT_FOUND, "there is no such session")


def require_scope(principal: Principal, scope: Scope) -> None:
    if not principal.has(scope):
        raise RelayError(ErrorCode.FORBIDDEN, f"the token does not have scope `{scope}`", {"scope": scope.value})


def require_subscribe(principal: Principal, session: str) -> None:
    """After it the claim decides: `may_create` says whether the owner matters."""
    require_scope(principal, Scope.SUBSCRIBE)
    if not principal.may_reach(session):
        raise not_found()


def require_publish(principal: Principal, session: str) -> None:
    """After it, without patterns, the session must exist and be owned by the principal's user."""
    require_scope(principal, Scope.PUBLISH)
    if not principal.may_reach(session):
        raise not_found()


def require_consume(principal: Principal) -> None:
    """The inbox holds items of all sessions of a tenant, so a token for some of them is not enough."""
    if principal.has(Scope.CONSUME):
        if principal.covers_all or (principal.patterns is None and principal.only_session is None):
            return
        raise RelayError(ErrorCode.FORBIDDEN, "the inbox is the whole tenant's: the token covers only some sessions")
    if not (principal.has(Scope.PUBLISH) and principal.covers_all):
        need = {"scope": Scope.CONSUME.value}
        raise RelayError(ErrorCode.FORBIDDEN, "the inbox needs scope `consume`, or `publish` for all sessions", need)


__all__ = ["not_found", "require_consume", "require_publish", "require_scope", "require_subscribe"]
