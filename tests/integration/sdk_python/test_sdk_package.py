"""What is published of the Python SDK: built as a wheel, used from the built file, against a real gateway."""

import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

from relayrouter import __version__

from loadtest.publisher import delta
from loadtest.stage import Stage

SDK = Path(__file__).parents[3] / "sdk" / "python"


def build(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=SDK, check=True, capture_output=True, timeout=50)
    return next(folder.glob("relayrouter-*.whl"))


async def run(program: str, wheel: Path) -> str:
    """A program that finds the package in the wheel only: not in this checkout."""
    code = f"import sys; sys.path.insert(0, {str(wheel)!r})\n{program}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=50, cwd=wheel.parent, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_the_package_its_types_and_nothing_else(tmp_path: Path) -> None:
    """No tests, no driver; and it says what it needs."""
    wheel = build(tmp_path)
    names = zipfile.ZipFile(wheel).namelist()
    metadata = zipfile.ZipFile(wheel).read(f"relayrouter-{__version__}.dist-info/METADATA").decode()

    assert "relayrouter/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"relayrouter", f"relayrouter-{__version__}.dist-info"}
    assert re.findall(r"^Requires-Dist: (\w+)", metadata, re.MULTILINE) == ["aiohttp"]


async def test_the_example_of_the_readme_runs_from_the_wheel(stage: Stage, tmp_path: Path) -> None:
    """As it is written there, but for the address."""
    gateway = await stage.gateway(stage.server().url)
    publisher = stage.publisher([gateway], "chat-42")
    await publisher.publish({"kind": "run_start", "run": "r"}, delta("r", stage.rng), {"kind": "run_end", "run": "r"})
    readme = (SDK / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert example is not None
    imports, _, body = example[1].partition("\n\n")
    body = body.replace("https://relay.example.com", gateway.url).replace("token=fetch_token", 'from_="start"')
    program = f"import asyncio\n{imports}\nasync def main():\n{textwrap.indent(body, '    ')}\nasyncio.run(main())\n"
    program += "import relayrouter; print('from', relayrouter.__file__)\n"
    text = await run(program, build(tmp_path))

    assert publisher.ledger.texts()["r"] in text
    assert ".whl" in text
