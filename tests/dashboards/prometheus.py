"""A real Prometheus beside gateways on this machine. Owned by the test that starts it."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import yaml

from loadtest.plain_http import NoAnswer, ask_once
from loadtest.processes import Gateway, free_port
from tests.dashboards.promtool import RULES

LABELS = {"namespace": "test", "app_kubernetes_io_instance": "relay"}
READY_SECONDS = 30


class Prometheus:
    """Scrapes every second; rules are evaluated as often."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self.url = f"http://127.0.0.1:{free_port()}"

    async def start(self, gateways: Sequence[Gateway]) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        config = self._folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(_configuration(gateways)), encoding="utf-8")
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                self._program,
                f"--config.file={config}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address={urlsplit(self.url).netloc}",
                stdout=log,
                stderr=log,
            )
        async with asyncio.timeout(READY_SECONDS):
            while not await self._is_ready():
                await asyncio.sleep(0.1)
        return self

    async def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, (self._folder / "prometheus.log").read_text()[-2000:]
        try:
            return (await ask_once(self.url, "GET", "/-/ready")).status == 200
        except NoAnswer:
            return False

    async def query(self, expr: str) -> list[float]:
        """The values of all series now."""
        found = await self._ask("query", {"query": expr})
        return [float(series["value"][1]) for series in found["result"]]

    async def rules(self) -> list[dict[str, Any]]:
        found = await self._ask("rules", {})
        return [rule for group in found["groups"] for rule in group["rules"]]

    async def _ask(self, what: str, fields: Mapping[str, str]) -> Any:
        answer = await ask_once(self.url, "GET", f"/api/v1/{what}?{urlencode(fields)}", timeout_seconds=20)
        body = json.loads(answer.body)
        assert body["status"] == "success", body
        return body["data"]

    async def end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


def _configuration(gateways: Sequence[Gateway]) -> dict[str, Any]:
    targets = [
        {"targets": [urlsplit(gateway.admin_url).netloc], "labels": {**LABELS, "pod": gateway.name}}
        for gateway in gateways
    ]
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "relayrouter", "static_configs": targets}],
    }


__all__ = ["LABELS", "Prometheus"]
