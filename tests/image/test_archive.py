"""Reading an image's archive, and what `python -m tools.image try` makes of its figures."""

import gzip
import io
import json
import os
import re
import tarfile
from pathlib import Path

import pytest

from tools.image import trial
from tools.image.archive import NotAnArchive, compressed_bytes, layers_of, unpack
from tools.image.trial import MOST_BYTES, MOST_SECONDS, Trial

RECIPE = Path(__file__).resolve().parents[2] / "deploy" / "image" / "Dockerfile"
BASE, OURS = os.urandom(300_000), b"print('hello')\n" * 20_000


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _archive(folder: Path, *layers: dict[str, bytes]) -> Path:
    named = {f"{number}.tar": _tar(files) for number, files in enumerate(layers)}
    path = folder / "image.tar"
    path.write_bytes(_tar({"manifest.json": json.dumps([{"Layers": list(named)}]).encode(), **named}))
    return path


def test_a_layer_weighs_what_a_registry_would_send(tmp_path: Path) -> None:
    """Within a percent of gzip; noise stays as large as it is, repetition does not."""
    archive = _archive(tmp_path, {"base": BASE}, {"ours": OURS})

    sizes = [compressed_bytes(layer) for layer in layers_of(archive)]

    wanted = [len(gzip.compress(_tar(files), 6)) for files in ({"base": BASE}, {"ours": OURS})]
    assert sizes == pytest.approx(wanted, rel=0.01)
    assert sizes[0] > 300_000 > 10 * sizes[1]


def test_upper_layers_lie_over_lower_ones(tmp_path: Path) -> None:
    archive = _archive(tmp_path, {"etc/a": b"old", "etc/b": b"b"}, {"etc/a": b"new"})

    unpack(archive, tmp_path / "root")

    assert (tmp_path / "root/etc/a").read_bytes() == b"new"
    assert (tmp_path / "root/etc/b").read_bytes() == b"b"


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    """No archive, no manifest, a layer that is not there, a layer that takes a file away."""
    broken = tmp_path / "broken.tar"
    for content in (b"nonsense", _tar({"other": b""}), _tar({"manifest.json": b'[{"Layers": ["gone.tar"]}]'})):
        broken.write_bytes(content)
        with pytest.raises(NotAnArchive, match=r"broken\.tar is no docker-archive"):
            list(layers_of(broken))
    with pytest.raises(NotAnArchive, match="removes"):
        unpack(_archive(tmp_path, {"a": b""}, {".wh.a": b""}), tmp_path / "root")


@pytest.mark.parametrize(
    ("tried", "words"),
    [
        (Trial(MOST_BYTES, MOST_SECONDS, 1.0, 0), []),
        (Trial(MOST_BYTES + 1, MOST_SECONDS, 1.0, 0), ["compressed"]),
        (Trial(MOST_BYTES, MOST_SECONDS + 0.01, 1.0, 0), ["ready after"]),
        (Trial(MOST_BYTES, MOST_SECONDS, 1.0, 143), ["ended it with 143"]),
    ],
)
def test_what_is_promised_is_judged_at_its_edge(tried: Trial, words: list[str]) -> None:
    """100 MB compressed, ready within 2 s, and an end of its own on SIGTERM."""
    assert len(tried.problems) == len(words)
    assert all(word in problem for word, problem in zip(words, tried.problems, strict=True))


def test_the_trial_starts_what_the_recipe_starts() -> None:
    """The same program and the same environment; more folders on PATH, for what puts it into its place."""
    recipe = RECIPE.read_text(encoding="utf-8").replace("\\\n", " ")
    environ = dict(re.findall(r"(\w+)=(\S+)", next(line for line in recipe.splitlines() if line.startswith("ENV "))))
    mine = trial.environment()
    assert mine["PATH"].startswith(environ.pop("PATH"))
    assert environ.items() <= mine.items() | {("RR_SERVER__HOST", "0.0.0.0"), ("RR_SERVER__ADMIN_HOST", "0.0.0.0")}
    lines = (line.partition(" ") for line in recipe.splitlines())
    assert [word for name, _, told in lines if name in ("ENTRYPOINT", "CMD") for word in json.loads(told)] == list(
        trial.PROGRAM
    )
