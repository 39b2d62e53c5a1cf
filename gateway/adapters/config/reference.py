"""The configuration table of the docs, read from the settings classes themselves."""

from typing import Any, NamedTuple

from gateway.adapters.config.load import LoadedSettings
from gateway.adapters.config.show import effective_settings
from gateway.settings import Settings


class Described(NamedTuple):
    key: str
    variable: str
    default: Any
    why: str


def describe_settings() -> list[Described]:
    """One row a setting: what it is called, its default and the reason for it."""
    rows: list[Described] = []
    for effective in effective_settings(LoadedSettings(Settings(), {})):
        topic, _, name = effective.key.partition(".")
        field = type(getattr(Settings(), topic)).model_fields[name]
        why = " ".join((field.description or "").split())
        rows.append(Described(effective.key, f"RR_{topic}__{name}".upper(), effective.value, why))
    return rows
