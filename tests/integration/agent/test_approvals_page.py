"""The examples of docs/approvals.md, run as they stand there."""

import asyncio
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import jwt
import pytest

from loadtest.stage import Stage

PAGE = Path(__file__).parents[3] / "docs" / "approvals.md"
EXAMPLE = re.compile(r"```sh\n(.*?)```\n```json\n(.*?)```", re.DOTALL)
SECRET = "x" * 40


def fits(shown: Any, said: Any) -> bool:
    """What the page shows is in what was said: same members and words; numbers and `...` stand for any."""
    if isinstance(shown, dict):
        return isinstance(said, dict) and all(name in said and fits(shown[name], said[name]) for name in shown)
    if isinstance(shown, list):
        return isinstance(said, list) and len(shown) == len(said) and all(map(fits, shown, said))
    if isinstance(shown, bool) or shown is None:
        return bool(shown is said)
    if isinstance(shown, int):
        return isinstance(said, int) and not isinstance(said, bool)
    return shown in ("...", said)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page's examples use curl")
async def test_each_example_answers_what_the_page_shows(stage: Stage) -> None:
    keys = json.dumps([{"kid": "k", "algorithm": "HS256", "secret": SECRET}])
    gateway = await stage.gateway(stage.server().url, auth__mode="jwt", auth__keys=keys)
    claims = {"sub": "agent", "exp": 4_000_000_000, "sessions": ["*"], "scope": "publish subscribe consume"}
    environ = {**os.environ, "RR_URL": gateway.url, "RR_TOKEN": jwt.encode(claims, SECRET, "HS256")}
    examples = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))

    for command, shown in examples:
        process = await asyncio.create_subprocess_exec(
            "bash", "-euc", command, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), 30)
        assert 0 == process.returncode, (command, err)
        assert fits(json.loads(shown), json.loads(out)), (command, out)

    assert 7 == len(examples)


def test_the_comparison_can_fail() -> None:
    assert fits({"a": 1, "b": ["..."]}, {"a": 2, "b": ["x"], "c": 1})
    for shown, said in (({"a": 1}, {}), ({"a": True}, {"a": 1}), (["x"], []), ("x", "y"), (1, True)):
        assert not fits(shown, said)
