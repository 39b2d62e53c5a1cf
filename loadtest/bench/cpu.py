"""CPU time and memory of another process, read from /proc (Linux only)."""

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
