"""Watches the route table's file (ports.RouteSource)."""

from pathlib import Path

from gateway.adapters.config.file_state import FileState, file_state
from gateway.adapters.config.route_file import BadRoutes, load_route_file, parse_routes, read_bounded
from gateway.domain.routing.book import RouteFile
from gateway.ports.routing import RoutesRefused


class RouteFileWatch:
    """`load` once, then `look` again and again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._taken: FileState | None = None
        """What was told last; None: the file was not there, or could not be read."""
        self._seen: FileState | None = None
        self._unread: FileState | None = None
        """What was told to be unreadable; it is tried on, for rights that come later change no signature."""
        self._is_changing = False
        self._data = b""

    def load(self) -> RouteFile:
        """Raises BadRoutes: a gateway does not start with other routes than its operator means."""
        self._taken = self._signature()
        found = load_route_file(self._path)
        self._data = read_bounded(self._path)
        return found

    def look(self) -> RouteFile | RoutesRefused | None:
        """A change is taken when two looks saw the same: who writes in place is not read in the middle."""
        signature = self._signature()
        if signature == self._taken:
            self._is_changing = False
            return None
        if not self._is_changing or signature != self._seen:
            self._seen, self._is_changing = signature, True
            return None
        try:
            data = read_bounded(self._path) if signature is not None else b""
        except OSError as exc:
            return None if self._signature() != signature else self._refused_unread(signature, exc)
        if self._signature() != signature:
            return None
        self._taken, self._unread, self._is_changing = signature, None, False
        if signature is None:
            self._data = b""
            return RoutesRefused((f"{self._path}: is not there",))
        if data == self._data:
            return None
        self._data = data
        try:
            return parse_routes(data, str(self._path))
        except BadRoutes as exc:
            return RoutesRefused(exc.details)

    def _refused_unread(self, signature: FileState | None, error: OSError) -> RoutesRefused | None:
        if signature == self._unread:
            return None
        self._unread, self._taken, self._data = signature, None, b""
        return RoutesRefused((f"{self._path}: cannot be read: {error.strerror or type(error).__name__}",))

    def _signature(self) -> FileState | None:
        return file_state(self._path)


__all__ = ["RouteFileWatch"]
