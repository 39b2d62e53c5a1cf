"""`connect`: the one way to a session."""

import ssl
from collections.abc import Sequence
from typing import Literal

from relayrouter.http import check_url
from relayrouter.options import ChannelChoice, Options, Segments, Timing, TokenSource
from relayrouter.session import Session
from relayrouter.store import CursorStore


def connect(
    url: str | Sequence[str],
    *,
    session: str,
    token: TokenSource | None = None,
    client: str | None = None,
    cursor: str | None = None,
    from_: Literal["live", "start"] = "live",
    channel: ChannelChoice = "auto",
    heartbeat: float | None = None,
    keep_alive: float | None = None,
    rhythm: bool = False,
    caps: Sequence[str] = (),
    store: CursorStore | None = None,
    user: str | None = None,
    queue_items: int = 64,
    queue_bytes: int = 1024 * 1024,
    segments: Segments = "auto",
    tls: ssl.SSLContext | None = None,
    timing: Timing | None = None,
) -> Session:
    """A session to be used as `async with`: it connects in the background and stays connected until it is closed.

    `url`: one gateway, or several: the first is preferred, the others are tried in an order of chance.
    `token`: a text, or a callback (async or not) that is called for every attempt.
    `caps`: media that you take, e.g. `("audio", "video/vp8")`; it comes as `media` events, on a WebSocket only.
    `tls`: for a gateway whose certificate is of a private authority, `ssl.create_default_context(cafile=...)`.
    `client`: the id of this app instance; by default the stored one, else a random one. Times are in seconds.
    Raises ValueError for options that cannot be.
    """
    if from_ not in ("live", "start"):
        raise ValueError("from_ must be live or start")
    urls = (url,) if isinstance(url, str) else tuple(url)
    options = Options(
        urls=tuple(check_url(each) for each in urls),
        session=session,
        token=token,
        client=client,
        cursor=cursor,
        from_start=from_ == "start",
        channel=channel,
        heartbeat=heartbeat,
        keep_alive=keep_alive,
        rhythm=rhythm,
        caps=tuple(caps),
        store=store,
        user=user,
        queue_items=queue_items,
        queue_bytes=queue_bytes,
        segments=segments,
        tls=tls,
        timing=timing or Timing(),
    )
    return Session(options)


__all__ = ["connect"]
