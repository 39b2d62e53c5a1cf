"""The token of each attempt, and how often a refused one may be tried. No token ever reaches a log or an error."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from relayrouter.errors import RelayError


class TokenUnavailable(RelayError):
    """The application's callback failed or took too long; the attempt failed with it."""

    default_code = "token_unavailable"


def _clean(token: str) -> str:
    """Files end with a line break. Raises ValueError, without the token, for what no header can carry."""
    token = token.strip()
    if any(character in token for character in "\r\n\0"):
        raise ValueError("the token has a line break in it")
    return token


class Credentials:
    """One per session. Raises ValueError for what is no source.

    `source`: a token, a callback (async or not) that is called for every attempt, or None.
    """

    def __init__(self, source: object, timeout_seconds: float) -> None:
        self._source = source
        self._timeout_seconds = timeout_seconds
        self._refused: str | None = None
        self._refusals_of_it = 0
        self._refusals_in_a_row = 0
        if source is not None and not isinstance(source, str) and not callable(source):
            raise ValueError("token must be a text, or a callback that gives one")
        self.token: str | None = _clean(source) if isinstance(source, str) else None
        """Of the last attempt."""

    async def fetch(self) -> str | None:
        """Raises TokenUnavailable, which says nothing of what the callback said: that may be a secret."""
        if callable(self._source):
            fetch = cast("Callable[[], Awaitable[str] | str]", self._source)
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    token = fetch()
                    if not isinstance(token, str):
                        token = await token
            except Exception as exc:  # noqa: BLE001  the application's callback may raise what it likes
                raise TokenUnavailable(f"the token callback failed: {type(exc).__name__}", retryable=True) from None
            if not isinstance(token, str):
                raise TokenUnavailable("the token callback gave no text", retryable=True)
            try:
                self.token = _clean(token)
            except ValueError as exc:
                raise TokenUnavailable(str(exc), retryable=True) from None
        return self.token

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def accepted(self) -> None:
        """A gateway took the last token."""
        self._refusals_in_a_row = 0

    def may_try_again(self) -> bool:
        """The last token was refused. False: that is final.

        The callback is asked once more; one token is tried twice at most, however long it was good in between.
        """
        self._refusals_in_a_row += 1
        self._refusals_of_it = self._refusals_of_it + 1 if self.token == self._refused else 1
        self._refused = self.token
        return callable(self._source) and self._refusals_in_a_row < 2 and self._refusals_of_it < 2


__all__ = ["Credentials", "TokenUnavailable"]
