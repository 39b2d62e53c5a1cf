"""Process 1 of the image: starts one program, passes signals on to it, reaps whatever orphan ends, exits as it did.

Standard library only and started without `site`: it costs some milliseconds and a few MB. A container's process 1 gets
no default action for signals and inherits every orphan; a gateway should not have to know either.
"""

import os
import signal
import sys

PASSED_ON = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
NOT_FOUND = 127
OF_A_SIGNAL = 128
"""Added to a signal's number, as shells do: 137 tells of SIGKILL, so of a lack of memory."""


def main(command: list[str]) -> int:
    # Blocked until they are waited for: none is lost between the start of the child and our first wait.
    watched = {*PASSED_ON, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsigmask=())
    except OSError as exc:
        print(f"error: {command[0]}: {exc.strerror}", file=sys.stderr)
        return NOT_FOUND
    while True:
        received = signal.sigwait(watched)
        if received != signal.SIGCHLD:
            _pass_on(child, received)
            continue
        status = _reap(child)
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else OF_A_SIGNAL - code


def _pass_on(child: int, received: int) -> None:
    try:
        os.kill(child, received)
    except ProcessLookupError:
        return  # it has just ended; SIGCHLD follows


def _reap(child: int) -> int | None:
    """Takes everyone who has ended: one SIGCHLD may stand for several. The status of `child`, if it was among them."""
    ended = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        if pid == child:
            ended = status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
