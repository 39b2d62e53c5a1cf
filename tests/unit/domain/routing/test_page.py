"""docs/routes.md: its example is a file that gateways take."""

import re
from pathlib import Path

from gateway.domain.routing.table import MessageType, RouteChannel
from tests.unit.domain.routing.located import file_of

PAGE = Path(__file__).parents[4] / "docs" / "routes.md"


def test_the_pages_example_is_right() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found = file_of(example)

    assert found.canary is not None
    assert ("2026-05-a", "2026-05-b", 0.1) == (found.current.name, found.canary.table.name, found.canary.share)
    assert RouteChannel.WEBHOOK is found.current.route(MessageType.MODEL_TEXT, "invoice").channel
