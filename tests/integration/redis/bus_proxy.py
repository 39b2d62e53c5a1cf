"""The way to one server's cluster bus, which a test can cut: for all others, or for one that must be cut off itself."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass(slots=True)
class BusProxy:
    """Every server connects from an address of its own (`bind-source-addr`), so it is known who comes."""

    target_port: int
    port: int
    is_cut: bool = False
    cut_sources: set[str] = field(default_factory=set)
    _server: asyncio.Server | None = None
    _links: dict[asyncio.Task[None], tuple[str, asyncio.StreamWriter]] = field(default_factory=dict)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    def cut(self, source: str | None = None) -> None:
        """What comes from there, or from anywhere, is reset now and refused from now on."""
        if source is None:
            self.is_cut = True
        else:
            self.cut_sources.add(source)
        for came_from, writer in self._links.values():
            if self._is_refused(came_from):
                writer.transport.abort()

    def heal(self) -> None:
        self.is_cut = False
        self.cut_sources.clear()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._links):
            task.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    def _is_refused(self, source: str) -> bool:
        return self.is_cut or source in self.cut_sources

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        source = writer.get_extra_info("peername")[0]
        self._links[task] = (source, writer)
        try:
            if self._is_refused(source):
                return
            there = await asyncio.open_connection("127.0.0.1", self.target_port)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_pump(reader, there[1]))
                    group.create_task(_pump(there[0], writer))
            finally:
                there[1].transport.abort()
        except (OSError, ExceptionGroup):
            pass  # one side is gone: so is the other one
        finally:
            del self._links[task]
            writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    raise ConnectionResetError


__all__ = ["BusProxy"]
