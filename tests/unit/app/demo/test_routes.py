"""The demo's route file: always a right one, and each canary another table than what is in force."""

from pathlib import Path

import pytest

from gateway.adapters.config.route_file import load_route_file
from gateway.app.demo.routes import SHARES, DemoRoutes
from gateway.domain.routing.book import RouteFile
from gateway.domain.routing.table import MessageType


class Table:
    """`DemoRoutes` without a gateway: what one would say is put into its report."""

    def __init__(self, folder: Path) -> None:
        self.notes: list[str] = []
        self.routes = DemoRoutes(folder / "routes.yaml", "s", list, self.notes.append)
        self.routes.write()

    def file(self) -> RouteFile:
        return load_route_file(self.routes.path)

    async def tried(self, share: int, verdict: str | None = None) -> tuple[str, str, float]:
        """After a verdict about the canary before, one is tried: names of both tables, and the share."""
        self.routes.report = {"canary": None if verdict is None else {"verdict": verdict}}
        await self.routes.begin_canary(share)
        canary = self.file().canary
        assert canary is not None
        return self.file().current.name, canary.table.name, canary.share


def test_it_begins_without_a_canary(tmp_path: Path) -> None:
    assert Table(tmp_path).file().canary is None


@pytest.mark.parametrize("share", SHARES)
async def test_share_of_a_canary(tmp_path: Path, share: int) -> None:
    assert await Table(tmp_path).tried(share) == ("table-1", "table-2", share / 100)


async def test_what_was_promoted_is_in_force_and_what_was_rolled_back_is_not_tried_again(tmp_path: Path) -> None:
    table = Table(tmp_path)
    await table.tried(10)

    assert await table.tried(50, "promoted") == ("table-2", "table-3", 0.5)
    assert await table.tried(50, "rolled_back") == ("table-2", "table-5", 0.5)


async def test_a_canary_thins_media_another_way_whatever_was_decided_before(tmp_path: Path) -> None:
    table, digests = Table(tmp_path), set[str]()
    for verdict in (None, "promoted", "rolled_back", "rolled_back", "promoted"):
        await table.tried(50, verdict)
        file = table.file()
        assert file.canary is not None
        both = [found.route(MessageType.MEDIA, "video").degrade for found in (file.current, file.canary.table)]
        assert both[0] is not both[1]
        digests.add(file.canary.table.digest)

    assert len(digests) == 5


async def test_no_gateway_is_told_in_a_line(tmp_path: Path) -> None:
    table = Table(tmp_path)

    await table.routes.decide("promote")

    assert table.notes == ["routes: no gateway is up"]
