"""Makes route tables of a file's content, whole or not at all: every mistake is reported, each with its line. Pure.

The content comes as `Located` values; who reads the file knows its syntax (adapters/config/route_file.py).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from gateway.domain.routing.book import Canary, RouteFile
from gateway.domain.routing.rules import faults_of
from gateway.domain.routing.table import (
    ANY,
    COLUMNS,
    SHIPPED,
    Backoff,
    Degrade,
    Key,
    Lane,
    MessageType,
    Retry,
    Route,
    RouteChannel,
    RouteTable,
)
from gateway.domain.wire.ids import InvalidId, check_id

MAX_KIND_BYTES: Final = 64
MAX_ROWS: Final = 1_000
MAX_ATTEMPTS: Final = 100
MAX_PAUSE_SECONDS: Final = 600.0
MAX_DEADLINE_SECONDS: Final = 7 * 86_400.0
MAX_TENANTS: Final = 1_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%")
_RETRY_KEYS: Final = ("attempts", "backoff", "initial_seconds", "max_seconds")

_Enum = TypeVar("_Enum", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Located:
    """A value of a file. `value`: a mapping of Located, a tuple of Located, or a plain one."""

    value: "Mapping[str, Located] | tuple[Located, ...] | str | int | float | bool | None"
    line: int
    """From 1: for what is in a mapping, the line of its key."""


class Problem(NamedTuple):
    line: int
    message: str


def read_tables(root: Located) -> RouteFile | list[Problem]:
    """The tables, or everything that is wrong, in the order of the lines."""
    reading = _Reading()
    found = reading.file(root)
    if found is None or reading.problems:
        return sorted(reading.problems)
    return found


class _Reading:
    """Of one file."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def file(self, root: Located) -> RouteFile | None:
        top = self._mapping(root, "the file", ("version", "routes", "canary"))
        if top is None:
            return None
        if "routes" not in top:
            self._wrong(root.line, "`routes` is missing: the rows by type and kind")
        rows = self._rows(top["routes"], SHIPPED) if "routes" in top else dict(SHIPPED)
        current = RouteTable(rows, self._name(top.get("version")))
        canary = top.get("canary")
        return RouteFile(current, None if canary is None else self._canary(canary, current))

    def _canary(self, node: Located, current: RouteTable) -> Canary | None:
        """Its rows stand on those of the current table: it says only what is to be tried."""
        fields = self._mapping(node, "canary", ("version", "share", "tenants", "routes"))
        if fields is None:
            return None
        if "routes" not in fields:
            self._wrong(node.line, "`canary.routes` is missing: the rows that are tried")
        if "share" not in fields and "tenants" not in fields:
            self._wrong(node.line, "`canary` needs `share` or `tenants`: which sessions try it")
        rows = self._rows(fields["routes"], current.rows) if "routes" in fields else dict(current.rows)
        table = RouteTable(rows, self._name(fields.get("version")))
        if "routes" in fields and table.digest == current.digest:
            self._wrong(node.line, "the canary decides everything as the current table does: there is nothing to try")
        elif table.name == current.name:
            self._wrong(node.line, f"the canary's version must differ from the current one, {current.name}")
        share = self._share(fields["share"]) if "share" in fields else 0.0
        return Canary(table, share, self._tenants(fields.get("tenants")))

    def _rows(self, node: Located, base: Mapping[Key, Route]) -> dict[Key, Route]:
        rows = dict(base)
        types = self._mapping(node, "routes", tuple(MessageType))
        lines: dict[tuple[Key, str], int] = {}
        count = 0
        for type_name, kinds_node in (types or {}).items():
            message_type = MessageType(type_name)
            kinds = self._mapping(kinds_node, type_name, None) or {}
            # The row for all kinds first: the others stand on it.
            for kind in sorted(kinds, key=lambda kind: kind != ANY):
                count += 1
                if count > MAX_ROWS:
                    self._wrong(kinds[kind].line, f"more than {MAX_ROWS} rows")
                    return rows
                if kind != ANY and not self._is_kind(kinds[kind], kind):
                    continue
                key = message_type, kind
                base_row = rows.get(key) or rows[message_type, ANY]
                rows[key] = self._row(kinds[kind], f"{type_name}.{kind}", base_row, key, lines)
                self._judge(key, rows, kinds[kind].line, lines)
        return rows

    def _judge(self, key: Key, rows: Mapping[Key, Route], line: int, lines: Mapping[tuple[Key, str], int]) -> None:
        """What it took over from the row for all kinds is told there."""
        message_type, kind = key
        taken_over = set(faults_of(message_type, ANY, rows[message_type, ANY])) if kind != ANY else set()
        for fault in faults_of(message_type, kind, rows[key]):
            if fault not in taken_over or (key, fault.column) in lines:
                self._wrong(lines.get((key, fault.column), line), f"{message_type}.{kind}: {fault.message}")

    def _row(self, node: Located, where: str, base: Route, key: Key, lines: dict[tuple[Key, str], int]) -> Route:
        cells = self._mapping(node, where, COLUMNS) or {}
        route = base
        for column, cell in cells.items():
            lines[key, column] = cell.line
            what = f"{where}.{column}"
            match column:
                case "lane":
                    route = replace(route, lane=self._enum(cell, what, Lane) or route.lane)
                case "channel":
                    channel = self._enum(cell, what, RouteChannel) or route.channel
                    # What came behind the former channel need not go with another one.
                    fallback = route.fallback if channel is route.channel or "fallback" in cells else None
                    route = replace(route, channel=channel, fallback=fallback)
                case "fallback":
                    pass  # after the channel, below
                case "retry":
                    route = replace(route, retry=self._retry(cell, what))
                case "deadline_seconds":
                    deadline = self._optional(cell, what, MAX_DEADLINE_SECONDS)
                    route = replace(route, deadline_seconds=deadline)
                case "persistence":
                    is_durable = self._word(cell, what, ("durable", "ephemeral"))
                    route = route if is_durable is None else replace(route, is_durable=is_durable == "durable")
                case _:
                    route = replace(route, degrade=self._enum(cell, what, Degrade) or route.degrade)
        if "fallback" in cells:
            cell = cells["fallback"]
            is_none = _is_none(cell)
            fallback = (
                None if is_none else self._enum(cell, f"{where}.fallback", RouteChannel, "none") or route.fallback
            )
            route = replace(route, fallback=fallback)
        return route

    # ---- cells ---------------------------------------------------------------------------------------------------

    def _retry(self, node: Located, where: str) -> Retry:
        if _is_none(node):
            return Retry()
        fields = self._mapping(node, where, _RETRY_KEYS)
        if fields is None:
            return Retry()
        retry = Retry()
        if "attempts" in fields:
            attempts = fields["attempts"].value
            if type(attempts) is int and 1 <= attempts <= MAX_ATTEMPTS:
                retry = replace(retry, attempts=attempts)
            else:
                self._wrong(fields["attempts"].line, f"{where}.attempts: 1 to {MAX_ATTEMPTS}, the first one counted")
        else:
            self._wrong(node.line, f"{where}: `attempts` is missing; `retry: none` is one attempt")
        if "backoff" in fields:
            backoff = self._enum(fields["backoff"], f"{where}.backoff", Backoff)
            retry = replace(retry, backoff=backoff or retry.backoff)
        if "initial_seconds" in fields:
            seconds = self._seconds(fields["initial_seconds"], f"{where}.initial_seconds", MAX_PAUSE_SECONDS)
            retry = replace(retry, initial_seconds=seconds or retry.initial_seconds)
        if "max_seconds" in fields:
            seconds = self._seconds(fields["max_seconds"], f"{where}.max_seconds", MAX_PAUSE_SECONDS)
            retry = replace(retry, max_seconds=seconds or retry.max_seconds)
        if retry.max_seconds < retry.initial_seconds:
            if "max_seconds" in fields:
                self._wrong(fields["max_seconds"].line, f"{where}.max_seconds is below initial_seconds")
            retry = replace(retry, max_seconds=retry.initial_seconds)
        return retry

    def _optional(self, node: Located, where: str, most: float) -> float | None:
        return None if _is_none(node) else self._seconds(node, where, most)

    def _seconds(self, node: Located, where: str, most: float) -> float | None:
        value = node.value
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and math.isfinite(value)
            and 0 < value <= most
        ):
            return float(value)
        self._wrong(node.line, f"{where}: a number of seconds above 0, at most {most:g}")
        return None

    def _share(self, node: Located) -> float:
        value = node.value
        if isinstance(value, str) and (match := _PERCENT.fullmatch(value.strip())) and float(match[1]) <= 100:
            return float(match[1]) / 100
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
            return float(value)
        self._wrong(node.line, "canary.share: from 0 to 1, or a percentage like `10%`")
        return 0.0

    def _tenants(self, node: Located | None) -> frozenset[str]:
        if node is None:
            return frozenset()
        values = node.value
        if not isinstance(values, tuple) or len(values) > MAX_TENANTS:
            self._wrong(node.line, f"canary.tenants: a list of at most {MAX_TENANTS} tenants")
            return frozenset()
        names = []
        for item in values:
            if isinstance(item.value, str) and _is_id(item.value, 128):
                names.append(item.value)
            else:
                self._wrong(item.line, "canary.tenants: each is a tenant's id; put numbers in quotes")
        return frozenset(names)

    def _name(self, node: Located | None) -> str:
        if node is None:
            return ""
        value = str(node.value) if type(node.value) in (str, int, float) else ""
        if _NAME.fullmatch(value) is None:
            self._wrong(node.line, "version: 1 to 64 letters, digits, `.`, `_` or `-`")
            return ""
        return value

    def _is_kind(self, node: Located, kind: str) -> bool:
        if _is_id(kind, MAX_KIND_BYTES):
            return True
        self._wrong(node.line, f"a kind is `{ANY}` or a name of 1 to {MAX_KIND_BYTES} bytes")
        return False

    def _enum(self, node: Located, where: str, kind: type[_Enum], *more: str) -> _Enum | None:
        word = self._word(node, where, (*kind, *more))
        return None if word is None else kind(word)

    def _word(self, node: Located, where: str, words: tuple[str, ...]) -> str | None:
        # `degrade: none` may come as YAML's null, too.
        value = "none" if node.value is None and "none" in words else node.value
        if isinstance(value, str) and value in words:
            return value
        given = f", not {value!r:.40}" if isinstance(value, str | int | float) else ""
        self._wrong(node.line, f"{where}: one of {', '.join(words)}{given}")
        return None

    def _mapping(self, node: Located, where: str, keys: tuple[str, ...] | None) -> Mapping[str, Located] | None:
        """Without the keys that are unknown, which are reported."""
        if not isinstance(node.value, Mapping):
            self._wrong(node.line, f"{where} must be a mapping" + (f" of {', '.join(keys)}" if keys else ""))
            return None
        if keys is None:
            return node.value
        known = {}
        for name, value in node.value.items():
            if name in keys:
                known[name] = value
            else:
                self._wrong(value.line, f"{where}: unknown key `{name:.40}`; there are {', '.join(keys)}")
        return known

    def _wrong(self, line: int, message: str) -> None:
        self.problems.append(Problem(line, message))


def _is_none(node: Located) -> bool:
    return node.value is None or node.value == "none"


def _is_id(value: str, max_bytes: int) -> bool:
    try:
        check_id(value, "name", max_bytes)
    except InvalidId:
        return False
    return True


__all__ = ["MAX_ATTEMPTS", "MAX_DEADLINE_SECONDS", "MAX_ROWS", "Located", "Problem", "read_tables"]
