"""The program that runs a real Kubernetes on this machine, and its clients. Every call has a deadline.

Must never leave a process behind: a command whose caller gives up is killed with its children.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
BESIDE: Final = ROOT.parent / "shared" / "cluster" / "cluster"
BUILD_SECONDS: Final = 1200.0
UP_SECONDS: Final = 240.0
COMMAND_SECONDS: Final = 120.0
SHOWN_CHARACTERS: Final = 2_000


class CannotRun(Exception):
    """This machine cannot: nothing was tried, so nothing failed."""


class CommandFailed(Exception):
    """A command ended with an error, or was not done in time."""


@dataclass(frozen=True, slots=True)
class Tool:
    program: Path

    @classmethod
    def find(cls, environ: Mapping[str, str] = os.environ, beside: Path = BESIDE) -> "Tool":
        """$CLUSTER_TOOL, else beside the repository. Raises CannotRun."""
        program = Path(environ["CLUSTER_TOOL"]) if environ.get("CLUSTER_TOOL") else beside
        if not sys.platform.startswith("linux"):
            raise CannotRun(f"a cluster's nodes are Linux namespaces; this is {sys.platform}")
        if not (program.is_file() and os.access(program, os.X_OK)):
            raise CannotRun(f"no program that starts a cluster: {program} (name one with CLUSTER_TOOL)")
        if os.geteuid() != 0:
            raise CannotRun("nodes are network namespaces, which only root may make")
        return cls(program)

    # ---- the cluster -------------------------------------------------------------------------------------------

    async def up(self, nodes: int = 3, *, prometheus: bool = False, build_seconds: float = BUILD_SECONDS) -> None:
        """Builds what is missing, starts the nodes and returns when they are ready. Raises CannotRun."""
        option = ["--prometheus"] if prometheus else []
        try:
            await self.run("build", *option, seconds=build_seconds)
            await self.run("up", "--nodes", str(nodes), *option, seconds=UP_SECONDS)
        except CommandFailed as exc:
            raise CannotRun(f"no cluster: {exc}") from exc

    async def is_up(self) -> bool:
        try:
            await self.kubectl("get", "nodes", seconds=30)
        except CommandFailed:
            return False
        return True

    async def down(self) -> None:
        await self.run("down", seconds=60)

    async def kill_node(self, number: int) -> None:
        await self.run("kill-node", str(number), seconds=60)

    async def start_node(self, number: int) -> None:
        await self.run("start-node", str(number), seconds=120)

    async def load_image(self, name: str, archive: Path) -> None:
        await self.run("load-image", name, str(archive), seconds=180)

    async def prometheus_rules(self, *files: Path) -> None:
        await self.run("prometheus-rules", *map(str, files), seconds=60)

    async def promql(self, expression: str) -> Any:
        """The answer's `data.result`."""
        told = json.loads(await self.run("promql", expression, "--json", seconds=30))
        return told.get("data", told)["result"]

    # ---- its clients -------------------------------------------------------------------------------------------

    async def kubectl(self, *words: str, input: str | None = None, seconds: float = COMMAND_SECONDS) -> str:  # noqa: A002
        return await self.run("kubectl", *words, input=input, seconds=seconds)

    async def kubectl_json(self, *words: str) -> Any:
        return json.loads(await self.kubectl(*words, "-o", "json"))

    async def apply(self, *manifests: Mapping[str, Any]) -> None:
        await self.kubectl("apply", "-f", "-", input="\n---\n".join(map(json.dumps, manifests)))

    async def helm(self, *words: str, input: str | None = None, seconds: float = 300.0) -> str:  # noqa: A002
        return await self.run("helm", *words, input=input, seconds=seconds)

    async def exec(
        self,
        *words: str,
        input: str | None = None,  # noqa: A002
        seconds: float = COMMAND_SECONDS,
        environ: Mapping[str, str] | None = None,
    ) -> str:
        """Any program in the network of node 1, where Services and pods answer."""
        return await self.run("exec", *words, input=input, seconds=seconds, environ=environ)

    def inside(self, *words: str) -> list[str]:
        """The command line that runs a Python module of this repository in the cluster's network."""
        return [str(self.program), "exec", sys.executable, "-m", *words]

    async def run(
        self,
        *words: str,
        input: str | None = None,  # noqa: A002
        seconds: float = COMMAND_SECONDS,
        environ: Mapping[str, str] | None = None,
    ) -> str:
        """Standard output. Raises CommandFailed, with the end of what it said."""
        return await run([str(self.program), *words], given=input, seconds=seconds, environ=environ, folder=ROOT)


async def run(
    command: Sequence[str],
    *,
    given: str | None = None,
    seconds: float = COMMAND_SECONDS,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> str:
    """Standard output of any program. Raises CommandFailed."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL if given is None else pipe,
        stdout=pipe,
        stderr=pipe,
        cwd=folder,
        env=None if environ is None else {**os.environ, **environ},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate(None if given is None else given.encode())
    except TimeoutError as exc:
        raise CommandFailed(f"{_shown(command)}: not done after {seconds:g} s") from exc
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        told = (errors or output).decode(errors="replace").strip()
        raise CommandFailed(f"{_shown(command)}: exit {process.returncode}: {told[-SHOWN_CHARACTERS:]}")
    return output.decode(errors="replace")


def _shown(command: Sequence[str]) -> str:
    """Without paths of this machine, and short: it may end up in a report."""
    words = " ".join([Path(command[0]).name, *command[1:]]).replace(f"{ROOT}/", "")
    return words if len(words) <= 160 else f"{words[:160]}..."


__all__ = ["ROOT", "CannotRun", "CommandFailed", "Tool", "run"]
