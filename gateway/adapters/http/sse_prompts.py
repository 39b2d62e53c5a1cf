"""A user's message in the way in which the client libraries of others send it: by POST, and the answer is its response.

It becomes an ordinary input of the session, in the agent's inbox, with the id of the run that is to answer it.
"""

import random
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import msgspec
from aiohttp import web

from gateway.adapters.http.parts import Access, Control, Inputs
from gateway.adapters.http.requests import idempotency_key_of, read_json
from gateway.adapters.http.sse_params import SseParams
from gateway.domain.access.principal import Principal
from gateway.domain.exchange.trace import TRACEPARENT, traceparent_of
from gateway.domain.streams.output import OutputFormat
from gateway.domain.streams.output.prompt import BadPrompt, Prompt, read_prompt
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import MAX_ID_BYTES, ClientId, RunId, SessionId, SessionRef

_CLIENT_PREFIX: Final = "ask-"
_decoder: Final = msgspec.json.Decoder(dict[str, Any])


class Prompts:
    """One per gateway."""

    def __init__(self, access: Access, inputs: Inputs, control: Control, *, max_bytes: int, rng: random.Random) -> None:
        """`max_bytes`: of a body, with the whole conversation that libraries put into it."""
        self._access = access
        self._inputs = inputs
        self._control = control
        self._max_bytes = max_bytes
        self._rng = rng

    async def read(self, request: web.Request, params: SseParams) -> tuple[Prompt, SseParams]:
        """The message, and what its response shows. Raises RelayError."""
        shown = params.shown
        if shown.format is OutputFormat.RELAYROUTER:
            raise RelayError(ErrorCode.METHOD_NOT_ALLOWED, "POST goes with a `format` of another library; see /input")
        body = await read_json(request, _decoder, self._max_bytes)
        try:
            prompt = read_prompt(shown.format, body, idempotency_key_of(request) or f"{self._rng.getrandbits(96):024x}")
        except BadPrompt as exc:
            raise RelayError(ErrorCode.BAD_REQUEST, str(exc)) from None
        shown = shown._replace(run=RunId(prompt.run), resume=None, message=prompt.continues)
        return prompt, replace(params, shown=shown, begins_with_run=True)

    async def send(self, request: web.Request, prompt: Prompt, principal: Principal, session: SessionId) -> None:
        """Returns when the message is durable. Raises RelayError."""
        ref = await self._access.member(principal, session)
        # Each request is a client of its own: its one message is the same one however often it is sent.
        client = _client_of(prompt.run)
        await self._answer(ref, client, principal, prompt)
        trace = traceparent_of(request.headers.get(TRACEPARENT))
        await self._inputs.by_http(ref, client, principal, 1, dict(prompt.payload), trace)

    async def _answer(self, ref: SessionRef, client: ClientId, principal: Principal, prompt: Prompt) -> None:
        """Asks that were told as interrupts. Others, and those that are not open, are the agent's to judge."""
        for ask, value in prompt.answers:
            try:
                await self._control.by_http(ref, client, principal, "answer", {"ask": ask, "value": value})
            except RelayError as exc:
                if exc.code is not ErrorCode.NOT_FOUND:
                    raise


def _client_of(run: str) -> ClientId:
    name = f"{_CLIENT_PREFIX}{run}"
    if len(name.encode()) > MAX_ID_BYTES:
        name = _CLIENT_PREFIX + sha256(run.encode()).hexdigest()
    return ClientId(name)


__all__ = ["Prompts"]
