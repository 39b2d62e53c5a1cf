"""Where memory is read: the container's limit nearest above the process, else its own pages, else nothing."""

import os
from pathlib import Path

import pytest

from gateway.adapters.machine.memory import UNKNOWN, memory_reader
from gateway.domain.admission.pressure import Memory

PAGE = os.sysconf("SC_PAGE_SIZE")


class Machine:
    """Files as the kernel shows them."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.cgroups = folder / "proc", folder / "cgroup"
        self.proc.mkdir()
        self.cgroups.mkdir()
        (self.proc / "statm").write_text("1000 200 30 4 0 5 0\n")

    def in_group(self, path: str) -> None:
        (self.proc / "cgroup").write_text(f"0::{path}\n")

    def group(self, path: str, **files: str) -> None:
        folder = self.cgroups / path.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"memory.{name}").write_text(text + "\n")

    def read(self, limit_bytes: int = 0) -> Memory:
        return memory_reader(limit_bytes, cgroups=self.cgroups, proc=self.proc)()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_container_counts_all_but_what_files_hold(machine: Machine) -> None:
    machine.in_group("/")
    machine.group("/", max="1000", current="700", stat="anon 400\nactive_file 100\ninactive_file 50\nkernel 20")

    assert machine.read() == Memory(550, 1000)


def test_the_nearest_limit_above_counts(machine: Machine) -> None:
    machine.in_group("/pods/p1/gateway")
    machine.group("/", max="9000", current="8000", stat="")
    machine.group("/pods/p1", max="1000", current="600", stat="")
    machine.group("/pods/p1/gateway", max="max", current="100", stat="")

    assert machine.read() == Memory(600, 1000)


def test_a_path_that_leads_out_of_the_mount_is_the_mount_itself(machine: Machine) -> None:
    machine.in_group("/../../elsewhere")
    machine.group("/", max="1000", current="600", stat="")

    assert machine.read() == Memory(600, 1000)


@pytest.mark.parametrize("files", [{}, {"max": "max", "current": "600"}])
def test_without_a_limit_there_is_only_the_process(machine: Machine, files: dict[str, str]) -> None:
    machine.in_group("/")
    machine.group("/", **files)

    assert machine.read() == Memory(200 * PAGE, 0)


def test_a_configured_limit_is_compared_with_the_process(machine: Machine) -> None:
    machine.in_group("/")
    machine.group("/", max="1000", current="600", stat="")

    assert machine.read(10**9) == Memory(200 * PAGE, 10**9)


OLDER = "5:pids:/old\n4:cpu,memory:%s\n0::/elsewhere\n"
NO_LIMIT = "9223372036854771712"


def test_the_older_groups_count_in_the_same_way(machine: Machine) -> None:
    """Also beside the newer ones, which then keep no account of memory."""
    (machine.proc / "cgroup").write_text(OLDER % "/pods/gateway")
    stat = "inactive_file 1\ntotal_active_file 100\ntotal_inactive_file 50"
    machine.group("memory/pods/gateway", limit_in_bytes="1000", usage_in_bytes="700", stat=stat)

    assert machine.read() == Memory(550, 1000)


def test_a_container_with_the_older_groups_sees_its_own_at_the_top(machine: Machine) -> None:
    """The path is that on the node; what is mounted is the container's group."""
    (machine.proc / "cgroup").write_text(OLDER % "/kubepods/burstable/pod1/c1")
    machine.group("memory", limit_in_bytes="1000", usage_in_bytes="600", stat="")

    assert machine.read() == Memory(600, 1000)


@pytest.mark.parametrize("limit", [NO_LIMIT, "-1"])
def test_the_older_groups_without_a_limit_leave_only_the_process(machine: Machine, limit: str) -> None:
    (machine.proc / "cgroup").write_text(OLDER % "/")
    machine.group("memory", limit_in_bytes=limit, usage_in_bytes="600", stat="")

    assert machine.read() == Memory(200 * PAGE, 0)


@pytest.mark.parametrize("lines", ["", "4:memory:/old\n", "nonsense"])
def test_a_machine_that_names_no_group_that_is_there_has_no_limit(machine: Machine, lines: str) -> None:
    (machine.proc / "cgroup").write_text(lines)

    assert machine.read() == Memory(200 * PAGE, 0)


def test_a_machine_that_tells_nothing_is_unknown(tmp_path: Path) -> None:
    assert memory_reader(cgroups=tmp_path / "none", proc=tmp_path / "none")() == UNKNOWN


def test_files_that_vanish_are_unknown(machine: Machine) -> None:
    """A limit that was there and is no longer readable refuses nobody."""
    machine.in_group("/")
    machine.group("/", max="1000", current="600", stat="")
    read = memory_reader(cgroups=machine.cgroups, proc=machine.proc)
    (machine.cgroups / "memory.current").unlink()

    assert read() == UNKNOWN
