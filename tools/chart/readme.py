"""The table of values in the chart's README."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tools.chart.values_file import Row


def table_of(rows: Iterable[Row]) -> list[Sequence[str]]:
    return [(f"`{row.dotted}`", _default(row.default), row.why) for row in rows]


def _default(value: Any) -> str:
    if value is None or value == "":
        return ""
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"
