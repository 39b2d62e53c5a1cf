"""What holds for every test."""

import asyncio
import re
import signal
from typing import Any

from hypothesis import settings

# How long one example takes is the machine's affair; `make test` has its own limits.
settings.register_profile("relayrouter", deadline=None)
settings.load_profile("relayrouter")


def pytest_configure() -> None:
    # looptime asks for the current loop around plain tests, too; without this Python 3.11 would make one that leaks.
    asyncio.set_event_loop(None)
    # A shell that starts `make test` in the background has it ignore interrupts, and so would every process of a test.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Which server versions were tested and which not: a skip that nobody counts looks like a success."""
    kinds: dict[str, set[str]] = {"passed": set(), "failed": set(), "error": set(), "skipped": set()}
    for outcome, found in kinds.items():
        for report in terminalreporter.stats.get(outcome, ()):
            if match := re.search(r"/redis/test_versions\.py::test_every_script_runs\[(.+)\]", report.nodeid):
                found.add(match[1])
    if not any(kinds.values()):
        return
    parts = [f"{len(found)} {outcome} ({', '.join(sorted(found))})" for outcome, found in kinds.items() if found]
    terminalreporter.write_line("server versions: " + ", ".join(parts))
