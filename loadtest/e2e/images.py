"""Images that a cluster without a registry needs: this tree, the previous release, a Redis, an Envoy."""

import hashlib
import json
import shutil
import sys
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Final

from gateway import __version__
from loadtest.e2e.tool import ROOT, CannotRun, CommandFailed, Tool, run

REPOSITORY: Final = "ghcr.io/relayrouter/relayrouter"
"""As in the chart's values: installs with defaults find it by that name."""
PRESENT: Final = f"{REPOSITORY}:{__version__}"
BASE: Final = "rr-cluster/python:3.11"
REDIS: Final = "rr/redis:7"
ENVOY: Final = "rr/envoy:e2e"
RECORD: Final = ROOT / "deploy" / "previous_release.json"
FOLDER: Final = ROOT / "build" / "e2e"
KEPT_ARCHIVES: Final = 3
BUILD_SECONDS: Final = 600.0
_PARTS: Final = ("gateway", "deploy/image", "requirements/image.txt")
"""What an image of a gateway is made of."""


@dataclass(frozen=True, slots=True)
class Release:
    """The one that users have before they upgrade to this tree."""

    version: str
    commit: str

    @classmethod
    def read(cls, file: Path = RECORD) -> "Release":
        fields = json.loads(file.read_text(encoding="utf-8"))
        return cls(fields["version"], fields["commit"])

    @property
    def image(self) -> str:
        return f"{REPOSITORY}:{self.version}"

    @property
    def source(self) -> Path:
        return FOLDER / f"source-{self.commit[:12]}"

    @property
    def chart(self) -> Path:
        return self.source / "deploy" / "helm" / "relayrouter"


@dataclass(slots=True)
class Images:
    """Each is made when it is first asked for, and loaded into every node."""

    tool: Tool
    are_loaded: bool = False
    """The cluster has those of the gateway; they are not made anew."""
    is_base_ready: bool = False

    async def present(self) -> str:
        """Of this tree as it is, also where it is not committed."""
        return await self._gateway(PRESENT, ROOT, await _head())

    async def previous(self) -> Release:
        """With its own Dockerfile, libraries and chart. Raises CannotRun where this clone has not got its commit."""
        release = Release.read()
        if not release.chart.is_dir():
            await _unpack(release)
        await self._gateway(release.image, release.source, release.commit, release.version)
        return release

    async def redis(self) -> str:
        archive = FOLDER / "redis.tar"
        if not archive.exists():
            await self._build("debian-image", REDIS, archive, "redis-server")
        await self.tool.load_image(REDIS, archive)
        return REDIS

    async def envoy(self) -> str:
        """The program of the Python package that the tests of proxies use. Raises CannotRun without it."""
        archive, context = FOLDER / "envoy.tar", FOLDER / "envoy"
        if not archive.exists():
            await self._base()
            context.mkdir(parents=True, exist_ok=True)
            shutil.copy2(_envoy_program(), context / "envoy")
            recipe = f'FROM {BASE}\nCOPY envoy /usr/local/bin/envoy\nUSER 65532:65532\nENTRYPOINT ["envoy"]\n'
            (context / "Dockerfile").write_text(recipe, encoding="utf-8")
            await self._build("build-image", ENVOY, archive, str(context))
        await self.tool.load_image(ENVOY, archive)
        return ENVOY

    async def _gateway(self, name: str, source: Path, revision: str, version: str = __version__) -> str:
        """Made anew when its parts have changed."""
        if self.are_loaded:
            return name
        archive = FOLDER / f"gateway-{fingerprint(source, _PARTS)[:16]}.tar"
        if not archive.exists():
            await self._base()
            FOLDER.mkdir(parents=True, exist_ok=True)
            draft = archive.with_suffix(".new")
            command = [
                sys.executable, "-m", "tools.image", "build", name, "--base", BASE, "--archive", str(draft),
                "--source", str(source), "--revision", revision, "--version-label", version,
            ]  # fmt: skip
            await _or_cannot(command)
            draft.rename(archive)
            forget_oldest(FOLDER, KEPT_ARCHIVES)
        await self.tool.load_image(name, archive)
        return name

    async def _base(self) -> None:
        """In the store that images are built from, also where only the tool's cache has it."""
        if self.is_base_ready:
            return
        await _or_cannot([str(self.tool.program), "build-base-image"])
        try:
            await run(["buildah", "inspect", "--type", "image", BASE])
        except (CommandFailed, OSError):
            context = FOLDER / "base"
            context.mkdir(parents=True, exist_ok=True)
            (context / "Dockerfile").write_text(f"FROM {BASE}\nUSER 65532:65532\n", encoding="utf-8")
            await self._build("build-image", "rr/base:e2e", FOLDER / "base.tar", str(context))
        self.is_base_ready = True

    async def _build(self, recipe: str, name: str, archive: Path, *words: str) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        draft = archive.with_suffix(".new")
        await _or_cannot([str(self.tool.program), recipe, name, str(draft), *words])
        draft.rename(archive)


def forget_oldest(folder: Path, kept: int) -> None:
    """Each image of a gateway is 400 MB."""
    archives = sorted(folder.glob("gateway-*.tar"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    for archive in archives[kept:]:
        archive.unlink()


async def _or_cannot(command: list[str]) -> None:
    """A machine that cannot make images cannot run anything."""
    try:
        await run(command, seconds=BUILD_SECONDS, folder=ROOT)
    except CommandFailed as exc:
        raise CannotRun(f"no image: {exc}") from exc


async def _head() -> str:
    try:
        return (await run(["git", "rev-parse", "HEAD"], folder=ROOT)).strip()
    except (CommandFailed, OSError):
        return "unknown"


async def _unpack(release: Release) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    archive = FOLDER / "previous.tar"
    try:
        await run(["git", "archive", "--output", str(archive), release.commit], folder=ROOT)
    except (CommandFailed, OSError) as exc:
        raise CannotRun(
            f"the previous release {release.version} is commit {release.commit[:12]}, which this clone has not got "
            "(a shallow one? `git fetch --unshallow`)"
        ) from exc
    shutil.rmtree(release.source, ignore_errors=True)
    with tarfile.open(archive) as packed:
        packed.extractall(release.source, filter="data")
    archive.unlink()


def _envoy_program() -> Path:
    """The package's own binary; what it puts on PATH is a script that starts it."""
    spec = util.find_spec("envoy")
    program = Path(spec.origin).parent / "_bin" / "envoy" if spec and spec.origin else None
    if program is None or not program.is_file():
        raise CannotRun("no Envoy: it comes with the development requirements (requirements/dev.txt)")
    return program


def fingerprint(root: Path, parts: Iterable[str]) -> str:
    """Of the files' names and contents, in a fixed order."""
    digest = hashlib.sha256()
    for part in parts:
        top = root / part
        files = sorted(top.rglob("*")) if top.is_dir() else [top]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(root)}\0{file.stat().st_size}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


__all__ = ["BASE", "ENVOY", "PRESENT", "REDIS", "Images", "Release", "fingerprint", "forget_oldest"]
