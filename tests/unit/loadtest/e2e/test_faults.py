"""What a row of a fault calls passed, and which processes a fault may end."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from loadtest.e2e.account import Account
from loadtest.e2e.faults_api import METRIC, api_servers, kill_each
from loadtest.e2e.faults_drain import Readiness
from loadtest.e2e.faults_pods import last_end
from loadtest.e2e.faults_scene import PODS, Fault, Scene, is_whole, objections
from loadtest.e2e.site import Pod


async def _nothing(_scene: Scene) -> None:
    return


QUIET = Fault("quiet", "no socket ends", _nothing)
BREAKING = Fault("breaking", "sockets end", _nothing, breaks_sockets=True, away_seconds=15.0)
WHOLE = Account(streams=60, published=100)
POD = Pod("p", "198.18.1.2", "node1", is_ready=True, is_terminating=False, restarts=0, image="i")


# ---- the judgement -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "account"),
    [
        (QUIET, WHOLE),
        (QUIET, replace(WHOLE, closes={1000: 40, 1012: 3})),
        (BREAKING, replace(WHOLE, abnormal_closes=1, closes={1006: 1}, longest_away_seconds=15.0)),
    ],
)
def test_what_a_fault_may_do_is_no_objection(fault: Fault, account: Account) -> None:
    """Sockets that a drain closes, and those that cannot be saved."""
    assert objections(account, fault) == []


@pytest.mark.parametrize(
    ("fault", "account"),
    [
        (QUIET, replace(WHOLE, lost=1)),
        (QUIET, replace(WHOLE, repeated=1)),
        (QUIET, replace(WHOLE, reordered=1)),
        (QUIET, replace(WHOLE, published=0)),
        (QUIET, replace(WHOLE, admitted_over_budget=1)),
        (QUIET, replace(WHOLE, closes={1006: 1})),
        (QUIET, replace(WHOLE, closes={4408: 1})),
        (QUIET, replace(WHOLE, longest_away_seconds=0.1)),
        (BREAKING, WHOLE),
        (BREAKING, replace(WHOLE, closes={1006: 1}, lost=1)),
        (BREAKING, replace(WHOLE, closes={1006: 1, 1011: 1})),
        (BREAKING, replace(WHOLE, closes={1006: 1}, longest_away_seconds=15.1)),
    ],
)
def test_what_a_fault_may_not_do_is_one_objection(fault: Fault, account: Account) -> None:
    """Each of them fails the row by itself; that nothing broke where it must have shows nothing."""
    assert len(objections(account, fault)) == 1


@pytest.mark.parametrize(
    ("pods", "is_so"),
    [
        ([POD] * PODS, True),
        ([POD] * (PODS - 1), False),
        ([POD] * (PODS + 1), False),
        ([POD] * (PODS - 1) + [replace(POD, is_ready=False)], False),
        ([POD] * (PODS - 1) + [replace(POD, is_terminating=True)], False),
    ],
)
def test_gateways_are_whole_when_all_are_there_and_serve(pods: list[Pod], *, is_so: bool) -> None:
    """A pod that ends is still listed."""
    assert is_whole(pods) is is_so


def test_readiness_keeps_the_worst_look() -> None:
    """One moment below the budget is enough."""
    readiness = Readiness()

    for pods in ([POD] * 4, [POD] * 2 + [replace(POD, is_ready=False)] * 2, [POD] * 4):
        readiness.note(pods)

    assert (readiness.fewest, readiness.looks) == (2, 3)


def test_reason_of_the_last_end_is_the_gateways() -> None:
    """Other containers of the pod may have ended for reasons of their own."""
    other = {"name": "proxy", "lastState": {"terminated": {"reason": "Error"}}}
    gateway = {"name": "gateway", "lastState": {"terminated": {"reason": "OOMKilled"}}}

    assert last_end({"status": {"containerStatuses": [other, gateway]}}) == "OOMKilled"


@pytest.mark.parametrize("status", [{}, {"containerStatuses": [{"name": "gateway", "lastState": {}}]}])
def test_a_container_that_never_ended_has_no_reason(status: dict[str, object]) -> None:
    """Neither has one that was not started yet."""
    assert last_end({"status": status}) == ""


def test_the_metric_is_found_among_others() -> None:
    """Not in its help, and not in a longer name."""
    text = (
        "# HELP relayrouter_kubernetes_away 1: x\nrelayrouter_kubernetes_away_x 0.0\nrelayrouter_kubernetes_away 1.0\n"
    )

    found = METRIC.search(text)

    assert found is not None
    assert found[1] == "1.0"


# ---- the API server's process --------------------------------------------------------------------------------------


UP: Final = "echo up; read line"


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    """A holder with a process named like the API server and another one below it, and such a process elsewhere."""
    server, other = tmp_path / "kube-apiserver", tmp_path / "etcd"
    for copy in (server, other):
        shutil.copy(str(shutil.which("sh")), copy)
    below = f"exec 3<&0; {server} -c '{UP}' <&3 & {other} -c '{UP}' <&3 & wait"
    pipe = subprocess.PIPE
    holder = subprocess.Popen(["sh", "-c", below], stdin=pipe, stdout=pipe)
    elsewhere = subprocess.Popen([server, "-c", UP], stdin=pipe, stdout=pipe)
    for process, lines in ((holder, 2), (elsewhere, 1)):
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(lines)] == [b"up\n"] * lines
    yield {"holder": holder, "elsewhere": elsewhere}
    kill_each([*_below(holder.pid), holder.pid, elsewhere.pid])
    for process in (holder, elsewhere):
        process.communicate()


def _below(holder: int) -> list[int]:
    """Its children."""
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(holder)], capture_output=True, text=True, check=False)
    return [int(word) for word in told.stdout.split()]


def test_only_the_api_server_below_the_holder_is_found(programs: dict[str, "subprocess.Popen[bytes]"]) -> None:
    """One of another cluster is nobody's business here, nor are the node's other processes."""
    holder = programs["holder"].pid

    found = api_servers(holder)

    assert len(found) == 1
    assert found[0] in _below(holder)


def test_a_process_that_is_gone_is_not_counted_as_killed(programs: dict[str, "subprocess.Popen[bytes]"]) -> None:
    """It ended by itself between the look and the signal."""
    elsewhere = programs["elsewhere"]
    elsewhere.kill()
    elsewhere.wait()

    assert kill_each([elsewhere.pid]) == 0
