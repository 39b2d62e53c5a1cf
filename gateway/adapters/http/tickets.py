"""One-use tickets: for clients that can set no header when they connect (U02)."""

import msgspec
from aiohttp import web

from gateway.adapters.http.errors import json_response
from gateway.adapters.http.parts import Access
from gateway.adapters.http.requests import bearer_token, read_json
from gateway.domain.wire.ids import SessionId, check_id

MAX_BODY_BYTES = 4_096


class _TicketRequest(msgspec.Struct):
    session: str | None = None


_decoder = msgspec.json.Decoder(_TicketRequest)


class TicketsApi:
    """Handlers of one gateway."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/tickets", self.issue)

    async def issue(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        body = await read_json(request, _decoder, MAX_BODY_BYTES)
        session = None if body.session is None else SessionId(check_id(body.session, "session"))
        ticket = await self._access.issue_ticket(principal, session)
        return json_response({"ticket": ticket.ticket, "expires_in_seconds": ticket.expires_in_seconds})


__all__ = ["TicketsApi"]
