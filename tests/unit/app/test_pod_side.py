"""The client of Kubernetes is loaded where it is wanted, and nowhere else."""

import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, sys
from gateway.app.compose import Gateway
from gateway.settings import AuthSettings, ClusterSettings, Settings

async def main():
    cluster = ClusterSettings(kubernetes={is_on}, service="relay")
    Gateway(Settings(auth=AuthSettings(mode="none"), cluster=cluster), print)

asyncio.run(main())
print("kubernetes" in sys.modules)
"""


@pytest.mark.parametrize("is_on", [False, True])
def test_the_client_is_loaded_only_where_it_is_wanted(is_on: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(is_on=is_on)], capture_output=True, text=True, timeout=55, check=False
    )

    assert f"{is_on}\n" == done.stdout, done.stderr
