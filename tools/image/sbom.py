"""A bill of materials (CycloneDX 1.6) of a requirements file with hashes. The same input, the same text."""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from packaging.markers import Marker

_PIN = re.compile(r"(?P<name>[a-z0-9._-]+)==(?P<version>[^\s;\\]+)\s*(?:;\s*(?P<marker>[^\\]+))?", re.IGNORECASE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_IMAGE = {
    "sys_platform": "linux",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "os_name": "posix",
}


class Pin(NamedTuple):
    name: str
    version: str
    sha256: tuple[str, ...]
    """Of every file of that version: one of them is in the image."""


def pins(requirements: str) -> Iterator[Pin]:
    """What a Linux image with CPython installs."""
    for entry in re.split(r"\n(?=[a-zA-Z0-9])", requirements.replace("\\\n", " ")):
        match = _PIN.match(entry)
        if match and (match["marker"] is None or Marker(match["marker"].split("--hash")[0].strip()).evaluate(_IMAGE)):
            yield Pin(match["name"], match["version"], tuple(sorted(_HASH.findall(entry))))


def bill_of_materials(requirements: Path, version: str) -> dict[str, Any]:
    text = requirements.read_text(encoding="utf-8")
    subject = {"type": "application", "name": "relayrouter", "version": version, "bom-ref": "relayrouter"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, version + text)}",
        "version": 1,
        "metadata": {"component": {**subject, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [_component(pin) for pin in pins(text)],
    }


def _component(pin: Pin) -> dict[str, Any]:
    purl = f"pkg:pypi/{pin.name}@{pin.version}"
    files = [
        {
            "type": "distribution",
            "url": purl,
            "comment": "one of its files",
            "hashes": [{"alg": "SHA-256", "content": value}],
        }
        for value in pin.sha256
    ]
    return {
        "type": "library",
        "name": pin.name,
        "version": pin.version,
        "purl": purl,
        "bom-ref": purl,
        "externalReferences": files,
    }
