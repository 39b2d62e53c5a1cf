"""Runs a program so that it cannot outlive the process that asked for it. A script; imports nothing of ours.

Usage: python -I -S launcher.py MODE PARENT_PID PROGRAM ARGS...

`pdeathsig` (Linux): the kernel ends the program when the thread that started it ends; it replaces this process.
`pdeathsig-kill` (Linux): the same by SIGKILL, for programs that have nothing to save, stopped ones included.
`guard` (elsewhere): this process stays, and ends the server when its standard input, a pipe held by the parent, ends.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading

_PR_SET_PDEATHSIG = 1


# SIGTERM, because with appendfsync everysec a reply may precede its write: the server flushes first.
# A stopped server ends as well: its process group is orphaned then, and the kernel continues those.
_DEATH_SIGNALS = {"pdeathsig": signal.SIGTERM, "pdeathsig-kill": signal.SIGKILL}


def _exec_with_pdeathsig(parent: int, command: list[str], death: signal.Signals) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, death, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it died before the kernel was told
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606  that is this script's purpose


def _guard(command: list[str]) -> int:
    # Should we be stopped when the parent dies, the kernel sends SIGHUP before it lets us go on.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)  # noqa: S603

    def end_with_parent() -> None:
        while os.read(0, 4096):
            pass
        server.terminate()
        server.send_signal(signal.SIGCONT)

    threading.Thread(target=end_with_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    return server.wait()


def main(arguments: list[str]) -> int:
    mode, parent, *command = arguments
    if mode in _DEATH_SIGNALS:
        _exec_with_pdeathsig(int(parent), command, _DEATH_SIGNALS[mode])
    return _guard(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
