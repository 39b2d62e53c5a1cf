"""Runs one gateway in this process: embedded server, signals, drain, exit code. Called by `relayrouter serve`."""

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvloop
from pydantic import SecretStr

from gateway.adapters.auth import warn_if_open
from gateway.adapters.embedded import EmbeddedServer
from gateway.adapters.logs import set_up_logs
from gateway.adapters.machine.memory import memory_reader
from gateway.app.compose import Gateway
from gateway.app.dev_secret import default_data_dir, dev_secret_file, ensure_dev_secret
from gateway.app.garbage import Garbage
from gateway.domain.operator_error import OperatorError
from gateway.settings import Settings, hidden_url

log = structlog.get_logger()

EXIT_OK, EXIT_INCIDENT = 0, 1


@dataclass(frozen=True, slots=True)
class ServeOptions:
    embedded: bool = False
    data_dir: Path | None = None
    """Of the embedded server; None: the user's own."""
    as_json: bool = False


def serve(settings: Settings, options: ServeOptions) -> int:
    """The exit code. Raises OperatorError when it cannot start."""
    set_up_logs(settings.log)
    _raise_file_limit()
    if not options.embedded:
        _require_keys(settings)
        return uvloop.run(_run(settings, options))
    data_dir = options.data_dir or default_data_dir(os.environ)
    with EmbeddedServer.start(data_dir) as server:
        redis = settings.redis.model_copy(update={"url": SecretStr(server.url), "password_file": None})
        settings = settings.model_copy(update={"redis": redis})
        if settings.auth.mode == "jwt":
            settings = _with_dev_secret(settings, data_dir)
        return uvloop.run(_run(settings, options, server))


def _with_dev_secret(settings: Settings, data_dir: Path) -> Settings:
    """`--embedded` is for a first try: the secret is made where it is asked for, or in the data directory."""
    auth = settings.auth
    if not auth.has_keys:
        auth = auth.model_copy(update={"dev_secret_file": dev_secret_file(data_dir)})
    if auth.dev_secret_file is not None:
        ensure_dev_secret(auth.dev_secret_file)
    return settings.model_copy(update={"auth": auth})


def _require_keys(settings: Settings) -> None:
    if settings.auth.mode == "jwt" and not settings.auth.has_keys:
        raise OperatorError(
            "auth.mode is jwt and there is no key: set auth.keys or auth.dev_secret_file, or use --auth none"
        )


def _raise_file_limit() -> None:
    """Each client is a file; the soft limit is often 1,024 where the hard one is far above."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run(settings: Settings, options: ServeOptions, server: EmbeddedServer | None = None) -> int:
    loop = asyncio.get_running_loop()
    asked_to_stop = asyncio.Event()
    incidents: list[str] = []

    def on_incident(task: str) -> None:
        incidents.append(task)
        asked_to_stop.set()

    gateway = Gateway(settings, on_incident, on_terminating=asked_to_stop.set)
    garbage = Garbage(memory_reader(settings.admission.memory_limit_bytes))
    garbage.begin()
    if server is not None:
        server.on_exit = lambda _code: _call_in(loop, lambda: on_incident("embedded-valkey"))

    was_signalled = False

    def on_signal() -> None:
        """The first one hurries nothing, also where the drain has begun with the deletion of the pod."""
        nonlocal was_signalled
        if was_signalled:
            gateway.drainer.hurry()
        was_signalled = True
        asked_to_stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    warn_if_open(settings.server, settings.auth)
    try:
        port, admin_port = await gateway.start()
        gateway.run_beside("garbage", garbage.run())
        await _first_of(gateway, asked_to_stop)
        if not asked_to_stop.is_set():
            _announce(gateway, settings, options, port, admin_port)
        await asked_to_stop.wait()
        if incidents:
            log.error("stopping_after_incident", task=incidents[0])
            gateway.drainer.begin()
            gateway.drainer.hurry()
        await gateway.drain()
    finally:
        await gateway.stop()
    return EXIT_INCIDENT if incidents else EXIT_OK


def _call_in(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """From another thread; the loop may have ended meanwhile."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(what)


async def _first_of(gateway: Gateway, asked_to_stop: asyncio.Event) -> None:
    """Ready, or told to stop before Redis ever answered."""
    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(gateway.subscribed()), group.create_task(asked_to_stop.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def _announce(gateway: Gateway, settings: Settings, options: ServeOptions, port: int, admin_port: int) -> None:
    """The ready line: for a script, or for a person."""
    addresses = {
        "gateway": gateway.id,
        "url": f"{_scheme(settings.tls.is_on)}://{settings.server.host}:{port}",
        "admin_url": f"{_scheme(settings.tls.admin)}://{settings.server.admin_host}:{admin_port}",
        "redis_url": hidden_url(settings.redis.url),
    }
    if options.as_json:
        line = json.dumps(addresses)
    else:
        line = "\n".join(f"{name.removesuffix('_url'):8} {value}" for name, value in addresses.items())
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    log.info("serving", **addresses)


def _scheme(has_tls: bool) -> str:
    return "https" if has_tls else "http"


__all__ = ["ServeOptions", "serve"]
