"""What an agent's backend writes into a session: runs, messages, asks; at any gateway, whatever dies meanwhile."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from types import TracebackType
from typing import Any, Literal, Self

from relayrouter.errors import ClosedError, ProtocolError, RelayError
from relayrouter.options import TokenSource
from relayrouter.producer_http import Gateways, close_all, path_of
from relayrouter.producer_options import Dialect, ProducerTiming, SegmentMode, Target, stream_query, urls_of
from relayrouter.producer_push import Pusher, PushResult
from relayrouter.producer_run import RunWriter
from relayrouter.tasks import Tasks, log

_ASK_WAIT_SECONDS = 25.0
"""Of one long poll for an ask's outcome."""
AskStatus = Literal["answered", "expired", "cancelled"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of an ask. `value`: of the first valid answer; None when nobody answered."""

    ask: str
    status: AskStatus
    value: Any = None
    user: str | None = None
    client: str | None = None
    """Who answered."""

    @property
    def is_answered(self) -> bool:
        return self.status == "answered"


@dataclass(frozen=True, slots=True)
class UserPush:
    """What became of a push to a user in one of the user's sessions."""

    session: str
    status: str
    """ok, duplicate, refused or failed."""
    seq: int | None
    is_live: bool


class Publisher:
    """One producer of one session: `async with Publisher(url, session="chat-42", token=...) as publisher`.

    Any number of tasks may use it at once. The token needs the scope `publish`.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        session: str,
        token: TokenSource | None = None,
        name: str | None = None,
        owner: str | None = None,
        timing: ProducerTiming | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`url`: one gateway or several. `token`: a text, or a callback (async or not), called for every attempt.

        `name`: of the producer of `push`; a later one of the same name fences an earlier one. Default: one of its own.
        `owner`: the user who owns the session, when this makes it. `tls`: for a gateway with a certificate of a
        private authority, `ssl.create_default_context(cafile=...)`. Raises ValueError.
        """
        self._target = Target(urls_of(url), session, token, owner, tls)
        self._timing = timing or ProducerTiming()
        self._gateways = Gateways(self._target.urls, token, self._timing, tls=tls)
        self._pushing = Gateways(self._target.urls, token, self._timing, tls=tls)
        self._name = name
        self._pusher: Pusher | None = None
        self._tasks = Tasks(self._crashed)
        self._is_open = False

    async def __aenter__(self) -> Self:
        self._gateways.open()
        self._pushing.open()
        self._is_open = True
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_open = False
        closings = [lambda: self._tasks.stop_but(None), self._pushing.close, self._gateways.close]
        await close_all(*([self._pusher.close] if self._pusher is not None else []), *closings)

    # ---- runs --------------------------------------------------------------------------------------------------

    def run(
        self,
        run: str | None = None,
        *,
        dialect: Dialect | None = None,
        segment: SegmentMode | None = None,
        tokens: int | None = None,
        pattern: str | None = None,
        max_delay: float | None = None,
        max_bytes: int | None = None,
        first: bool | None = None,
        viewers_grace: float | None = None,
    ) -> RunWriter:
        """One answer of a model: `async with publisher.run() as run`. `run`: its id; default: one of its own.

        `dialect`: the input is a provider's (openai, anthropic, text, ndjson), handed through as it is. `segment`: how
        the gateway cuts the text. `max_delay`: seconds for which text is held at most. `viewers_grace`: seconds without
        a viewer after which the inbox is told. What is None stays the operator's choice.
        """
        query = stream_query(
            segment=segment,
            tokens=tokens,
            pattern=pattern,
            max_delay_ms=None if max_delay is None else round(max_delay * 1000),
            max_bytes=max_bytes,
            first=first,
            viewers_grace=viewers_grace,
        )
        return RunWriter(self._target, self._timing, run, dialect, query)

    async def cancel(self, run: str, reason: str | None = None) -> bool:
        """End a run for everybody, whoever writes it. False: it had ended before."""
        body = {} if reason is None else {"reason": reason}
        path = path_of("sessions", self._target.session, "runs", run, "cancel")
        return bool((await self._ask("POST", path, body)).get("cancelled"))

    # ---- messages ----------------------------------------------------------------------------------------------

    async def push(self, *payloads: Mapping[str, Any], expires_in: float | None = None) -> PushResult:
        """Messages into the session, in this order; returns when all are in the log, each exactly once.

        Up to 128 of 240 KiB go whole or not at all. `expires_in`: kept so many seconds for who connects later. A
        cancelled wait withdraws nothing. Raises TooLargeError at once, else the RelayError of a refusal.
        """
        if not self._is_open:
            raise ClosedError("the producer is not open: use it as `async with`")
        if self._pusher is None:
            self._pusher = Pusher(self._pushing, self._target, self._name, self._timing.push_bytes)
            self._tasks.start("push", self._pusher.run())
        return await self._pusher.push(payloads, expires_in)

    async def push_to_user(
        self, user: str, *payloads: Mapping[str, Any], expires_in: float | None = None
    ) -> list[UserPush]:
        """Into all sessions that the user has been connected to, once into each; empty when there is none."""
        body: dict[str, Any] = {"messages": [{"payload": dict(payload)} for payload in payloads]}
        if expires_in is not None:
            body["expires_in"] = expires_in
        reply = await self._ask("POST", path_of("users", user, "push"), body, key=token_hex(16))
        sessions = reply.get("sessions")
        if not isinstance(sessions, list):
            raise ProtocolError("the answer to a push has no sessions")
        return [
            UserPush(str(each.get("session")), str(each.get("status")), each.get("seq"), bool(each.get("live")))
            for each in sessions
        ]

    # ---- asks --------------------------------------------------------------------------------------------------

    async def ask(
        self,
        message: str,
        *,
        options: Sequence[str | Mapping[str, str]] | None = None,
        schema: Mapping[str, Any] | None = None,
        expires_in: float | None = None,
        run: str | None = None,
        ask: str | None = None,
        users: Sequence[str] | None = None,
        clients: Sequence[str] | None = None,
        **fields: Any,
    ) -> Answer:
        """Ask whoever is in the session, and wait for the outcome: over dead gateways, until it is there.

        `options` or `schema`: what counts as an answer. `expires_in`: seconds, by default ten minutes. `ask`: its id;
        the same id again is the same ask, so an agent that was restarted goes on waiting. A cancelled wait leaves the
        ask open (`cancel_ask`). `run`: the run that waits; when it is stopped the ask is cancelled. `users`, `clients`:
        who may answer. `fields`: handed on (reason, toolCallId, metadata). Raises RelayError.
        """
        ident = ask or f"ask-{token_hex(8)}"
        who = {name: list(given) for name, given in (("users", users), ("clients", clients)) if given is not None}
        wanted = {
            "ask": ident,
            "message": message,
            "options": None if options is None else list(options),
            "responseSchema": schema,
            "expires_in": expires_in,
            "run": run,
            "who": who or None,
            "owner": self._target.owner,
            **fields,
        }
        body = {name: value for name, value in wanted.items() if value is not None}
        reply = await self._ask("POST", path_of("sessions", self._target.session, "asks"), body)
        while reply.get("status") == "open":
            reply = await self._ask(
                "GET",
                path_of("sessions", self._target.session, "asks", ident),
                query={"wait": f"{_ASK_WAIT_SECONDS:g}"},
                wait_seconds=_ASK_WAIT_SECONDS,
            )
        return _answer(ident, reply)

    async def cancel_ask(self, ask: str) -> Answer:
        """Take an ask back. One that was answered or has expired first stays so: the outcome says it."""
        path = path_of("sessions", self._target.session, "asks", ask, "cancel")
        return _answer(ask, await self._ask("POST", path, {}))

    # ---- inside ------------------------------------------------------------------------------------------------

    async def _ask(self, method: str, path: str, body: Any = None, **more: Any) -> Mapping[str, Any]:
        return await self._gateways.ask(method, path, body, **more)

    def _crashed(self, exc: BaseException) -> None:
        """A defect of ours: nobody waits for ever because of it."""
        pusher, self._pusher = self._pusher, None
        if pusher is not None and self._is_open:
            log.error("pushing failed: %s", type(exc).__name__)
            self._tasks.start("push-failed", pusher.close())


def _answer(ask: str, reply: Mapping[str, Any]) -> Answer:
    status = reply.get("status")
    if status not in ("answered", "expired", "cancelled"):
        raise RelayError(f"an ask with the status {status!r}", code="protocol")
    told = reply.get("resolution")
    resolution: Mapping[str, Any] = told if isinstance(told, dict) else {}
    return Answer(ask, status, resolution.get("value"), resolution.get("user"), resolution.get("client"))


__all__ = ["Answer", "AskStatus", "Publisher", "UserPush"]
