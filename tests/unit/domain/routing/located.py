"""Tables as a file would say them."""

from gateway.adapters.config.route_file import BadRoutes, parse_routes
from gateway.domain.routing.book import RouteFile
from gateway.domain.routing.table import ANY, SHIPPED, Key, Route, RouteTable


def file_of(text: str) -> RouteFile:
    return parse_routes(text.encode(), "r.yaml")


def table_of(rows: str) -> RouteTable:
    """`rows`: what `routes` holds, in YAML flow style."""
    return file_of(f"routes: {{{rows}}}").current


def problems_of(text: str) -> list[tuple[int, str]]:
    try:
        parse_routes(text.encode(), "r.yaml")
    except BadRoutes as exc:
        return [tuple(problem) for problem in exc.problems]
    return []


def shipped(changed: dict[Key, Route] | None = None, name: str = "t") -> RouteTable:
    return RouteTable({**SHIPPED, **(changed or {})}, name)


__all__ = ["ANY", "file_of", "problems_of", "shipped", "table_of"]
