"""What holds for every test of the SDK."""

import asyncio

from hypothesis import settings

# How long one example takes is the machine's affair.
settings.register_profile("relayrouter-sdk", deadline=None)
settings.load_profile("relayrouter-sdk")


def pytest_configure() -> None:
    # looptime asks for the current loop around plain tests, too; without this Python 3.11 would make one that leaks.
    asyncio.set_event_loop(None)
