"""CPU time and memory of another process, read from /proc (Linux only)."""

import os
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Time on a processor so far, all threads, in nanosecond steps."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def resident_kib(pid: int) -> int:
    """Resident memory of the process itself."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise RuntimeError(f"process {pid} has no VmRSS: it has ended")


def busy_seconds(core: int) -> float:
    """Time that any program, or another virtual machine, has used of this core; interrupts do not count. In ticks."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name == f"cpu{core}":
            user, nice, system, _, _, _, _, steal = (int(field) for field in fields[:8])
            return (user + nice + system + steal) / os.sysconf("SC_CLK_TCK")
    raise RuntimeError(f"this machine has no core {core}")
