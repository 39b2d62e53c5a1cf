"""A docker-archive: how large its layers are on their way through a registry, and its files in a folder."""

import json
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

_GZIP: Final = 31
_LEVEL: Final = 6
"""As Docker and buildah push."""
_PIECE_BYTES: Final = 1 << 20
_REMOVED: Final = ".wh."


class NotAnArchive(Exception):
    """The file is no docker-archive."""


def layers_of(archive: Path) -> Iterator[IO[bytes]]:
    """Each layer, uncompressed, the lowest first; read one before you ask for the next. Raises NotAnArchive."""
    try:
        with tarfile.open(archive) as outer:
            manifest = outer.extractfile("manifest.json")
            if manifest is None:
                raise NotAnArchive(f"{archive} has no manifest")
            for name in json.load(manifest)[0]["Layers"]:
                layer = outer.extractfile(name)
                if layer is None:
                    raise NotAnArchive(f"{archive} lacks {name}")
                yield layer
    except (tarfile.TarError, KeyError, ValueError) as exc:
        raise NotAnArchive(f"{archive} is no docker-archive ({exc})") from exc


def compressed_bytes(layer: IO[bytes]) -> int:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    size = 0
    while piece := layer.read(_PIECE_BYTES):
        size += len(packer.compress(piece))
    return size + len(packer.flush())


def unpack(archive: Path, folder: Path) -> None:
    """Needs the right to make files of other owners. Raises NotAnArchive where a layer takes files away again."""
    for layer in layers_of(archive):
        with tarfile.open(fileobj=layer, mode="r:") as files:
            for entry in files:
                if Path(entry.name).name.startswith(_REMOVED):
                    raise NotAnArchive(f"{archive}: a layer removes {entry.name}, which this program cannot")
                if not entry.isdev():
                    files.extract(entry, folder, filter="tar")


__all__ = ["NotAnArchive", "compressed_bytes", "layers_of", "unpack"]
