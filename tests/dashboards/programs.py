"""Where Prometheus' programs are: in the folder PROMETHEUS_BIN, on PATH, or in the cluster tool's cache.

Without them tests are skipped.
"""

import os
import shutil
from pathlib import Path

import pytest

REASON = "not found in PROMETHEUS_BIN or on PATH"
_CACHE = Path(os.environ.get("RR_CLUSTER_CACHE", Path.home() / ".cache" / "rr-cluster")) / "bin"


def program(name: str) -> Path | None:
    folder = os.environ.get("PROMETHEUS_BIN")
    found = shutil.which(name, path=folder) if folder else shutil.which(name) or shutil.which(name, path=_CACHE)
    return None if found is None else Path(found)


def needs(name: str) -> Path:
    found = program(name)
    if found is None:
        pytest.skip(f"{name} {REASON}")
    return found
