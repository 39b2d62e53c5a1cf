"""`python -m tools.image build [NAME:TAG]`, `... try ARCHIVE`, `... sbom`: the image, what it promises, its parts."""

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from gateway import __version__
from tools.image.sbom import bill_of_materials

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path("requirements", "image.txt")
SITE = Path("build", "image", "site")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.image", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="with docker where there is one, else with buildah")
    build.add_argument("name", nargs="?", default=f"relayrouter:{__version__}")
    build.add_argument("--engine", choices=("docker", "buildah"), default=_engine())
    build.add_argument("--base", help="a base that is on this machine; the libraries are then installed by this Python")
    build.add_argument("--archive", type=Path, help="also write the image to this file (docker-archive)")
    build.add_argument("--source", type=Path, default=ROOT, help="another tree of this project, e.g. an older release")
    build.add_argument("--revision", help="its commit; default: that of the tree")
    build.add_argument("--version-label", default=__version__, help="what its label says")
    parts = commands.add_parser("sbom", help="CycloneDX, from requirements/image.txt")
    parts.add_argument("file", nargs="?", type=Path, default=ROOT / "build" / "sbom.json")
    trial = commands.add_parser(
        "try", help="size, start and end of an image in an archive (Linux, root); exit 1 when bad"
    )
    trial.add_argument("archive", type=Path, help="of `build --archive`, or of `docker save`")
    arguments = parser.parse_args()
    if arguments.command == "sbom":
        return _write_sbom(arguments.file)
    if arguments.command == "try":
        if not arguments.archive.is_file():
            parser.error(f"no such file: {arguments.archive}; `build --archive` writes one")
        return _try(arguments.archive)
    if shutil.which(arguments.engine) is None:
        parser.error("no docker whose server answers, and no buildah: install one of them")
    revision = arguments.revision or _revision(arguments.source)
    labels = {"VERSION": arguments.version_label, "REVISION": revision}
    _build(arguments.engine, arguments.name, arguments.source.resolve(), labels, arguments.base)
    if arguments.archive is not None:
        _export(arguments.engine, arguments.name, arguments.archive)
    return 0


def _write_sbom(file: Path) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(bill_of_materials(ROOT / REQUIREMENTS, __version__), indent=2) + "\n", encoding="utf-8")
    print(file)
    return 0


def _try(archive: Path) -> int:
    from tools.image.trial import try_image  # noqa: PLC0415  needs an embedded server; a build does not

    trial = try_image(archive)
    print(json.dumps(asdict(trial)))
    for problem in trial.problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if trial.problems else 0


def _build(engine: str, name: str, source: Path, labels: dict[str, str], base: str | None) -> None:
    shutil.rmtree(source / SITE, ignore_errors=True)
    if base is not None:
        _install_libraries(source)
        labels = {**labels, "BASE": base}
    arguments = ["--tag", name, "--file", str(source / "deploy" / "image" / "Dockerfile")]
    arguments += [word for key, value in labels.items() for word in ("--build-arg", f"{key}={value}")]
    if engine == "docker":
        _run(["docker", "build", *arguments, str(source)])
    else:
        pull = [] if base is None else ["--pull-never"]
        # chroot: needs no rights that a container does not have.
        _run(["buildah", "bud", "--isolation", "chroot", "--layers=false", *pull, *arguments, str(source)])


def _install_libraries(source: Path) -> None:
    """For a base without pip: with this interpreter, whose version must be that of the base."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    _run([*pip, "--require-hashes", "--requirement", str(source / REQUIREMENTS), "--target", str(source / SITE)])


def _export(engine: str, name: str, archive: Path) -> None:
    archive.unlink(missing_ok=True)
    if engine == "docker":
        _run(["docker", "save", "--output", str(archive), name])
    else:
        _run(["buildah", "push", "--quiet", name, f"docker-archive:{archive}:{name}"])


def _revision(source: Path) -> str:
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=source, capture_output=True, text=True, check=False)  # noqa: S607
    return told.stdout.strip() or "unknown"


def _engine() -> str:
    """Docker where its server answers."""
    told = shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True, check=False)  # noqa: S607
    return "docker" if told and told.returncode == 0 else "buildah"


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True)  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
