"""What holds for every test."""

import asyncio


def pytest_configure() -> None:
    # looptime asks for the current loop around plain tests, too; without this Python 3.11 would make one that leaks.
    asyncio.set_event_loop(None)
