"""What holds for every test."""

import asyncio

from hypothesis import settings

# How long one example takes is the machine's affair; `make test` has its own limits.
settings.register_profile("relayrouter", deadline=None)
settings.load_profile("relayrouter")


def pytest_configure() -> None:
    # looptime asks for the current loop around plain tests, too; without this Python 3.11 would make one that leaks.
    asyncio.set_event_loop(None)
