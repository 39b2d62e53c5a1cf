"""What is missing is asked for over HTTP: pages of the session's log, by cursor. Disturbs no connection."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from relayrouter.cursor import Cursor
from relayrouter.errors import ProtocolError
from relayrouter.http import TRANSPORT_ERRORS, Http
from relayrouter.messages import Frame, read_frame

PAGE_MESSAGES = 500
_MAX_PAGES = 64


@dataclass(frozen=True, slots=True)
class Page:
    """`cursor`: after the last frame."""

    frames: tuple[Frame, ...]
    cursor: Cursor
    is_last: bool


async def pages(http: Http, client: str, since: Cursor) -> AsyncIterator[Page]:
    """From `since` to the head, or to where the gateway answers no more: then it just ends."""
    for _ in range(_MAX_PAGES):
        query = {"since": str(since), "limit": str(PAGE_MESSAGES), "client": client, "sdk": "1"}
        try:
            answer = await http.get("messages", query)
        except TRANSPORT_ERRORS:
            return
        body = answer.body
        if answer.status != 200 or body is None or not isinstance(body.get("frames"), list):
            return
        try:
            frames = tuple(read_frame(frame, len(str(frame))) for frame in body["frames"])
            cursor = Cursor.parse(str(body.get("cursor")))
        except ProtocolError:
            return
        is_last = body.get("more") is not True or cursor == since
        yield Page(frames, cursor, is_last)
        if is_last:
            return
        since = cursor


__all__ = ["PAGE_MESSAGES", "Page", "pages"]
