"""What is in effect and where it came from, fit to be printed: secrets are hidden here and nowhere else."""

from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, SecretStr

from gateway.adapters.config.load import LoadedSettings
from gateway.settings import hidden_url

HIDDEN = "***"


class Effective(NamedTuple):
    key: str
    value: Any
    """JSON-able, without secrets."""
    source: str


def effective_settings(loaded: LoadedSettings) -> list[Effective]:
    """Every setting, in the order of the topics."""
    rows: list[Effective] = []
    for topic in type(loaded.settings).model_fields:
        settings = getattr(loaded.settings, topic)
        for name in type(settings).model_fields:
            dotted = f"{topic}.{name}"
            value = getattr(settings, name)
            shown = hidden_url(value) if dotted == "redis.url" else plain(value)
            rows.append(Effective(dotted, shown, loaded.source(dotted)))
    return rows


def plain(value: Any) -> Any:
    """A value as JSON types; secrets become `***`."""
    match value:
        case SecretStr():
            return HIDDEN
        case BaseModel():
            return {
                name: plain(getattr(value, name))
                for name in type(value).model_fields
                if getattr(value, name) is not None or name in value.model_fields_set
            }
        case tuple() | list():
            return [plain(item) for item in value]
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case Path():
            return str(value)
        case _:
            return value
