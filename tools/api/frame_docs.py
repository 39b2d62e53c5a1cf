"""docs/protocol.md's frames and docs/asyncapi.yaml, written from tools/api/frames.py."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from gateway import __version__
from tools.api.frames import CLIENT_CONTROLS, SERVER_CONTROLS, TEXT_FRAMES, Frame, envelope

_GROUPS: dict[str, Mapping[type[Frame], Frame]] = {
    "text": TEXT_FRAMES,
    "control": SERVER_CONTROLS,
    "from client": CLIENT_CONTROLS,
}


def kind_of(frame: type[Frame]) -> str:
    return str(frame.__struct_config__.tag)


def frames_of(group: str) -> str:
    """Each frame with what it means and an example, for the docs."""
    parts = []
    for frame, example in _GROUPS[group].items():
        line = json.dumps(envelope(example, group), ensure_ascii=False)
        parts.append(f"`{kind_of(frame)}`: {' '.join((frame.__doc__ or '').split())}\n\n```json\n{line}\n```\n")
    return "\n".join(parts)


def asyncapi() -> str:
    """The AsyncAPI 3 document of the WebSocket."""
    types = [frame for group in _GROUPS.values() for frame in group]
    _, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    messages = {}
    for group, frames in _GROUPS.items():
        for frame, example in frames.items():
            messages[frame.__name__] = {
                "name": kind_of(frame),
                "summary": " ".join((frame.__doc__ or "").split()),
                "payload": _envelope_schema(frame, group),
                "examples": [{"payload": envelope(example, group)}],
            }
    of = {
        group: [{"$ref": f"#/channels/session/messages/{frame.__name__}"} for frame in _GROUPS[group]]
        for group in _GROUPS
    }
    document = {
        "asyncapi": "3.0.0",
        "info": {
            "title": "RelayRouter WebSocket",
            "version": __version__,
            "description": (
                "One JSON text frame a message; with `batch=1` also an array of text messages in one frame. "
                "Fields may be added; ignore those that you do not know."
            ),
        },
        "channels": {
            "session": {
                "address": "/v1/sessions/{session}/ws",
                "parameters": {"session": {"description": "The session's id, percent-encoded."}},
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
            }
        },
        "operations": {
            "receive": {
                "action": "receive",
                "channel": {"$ref": "#/channels/session"},
                "summary": "What a client gets.",
                "messages": of["text"] + of["control"],
            },
            "send": {
                "action": "send",
                "channel": {"$ref": "#/channels/session"},
                "summary": 'What a client may send; also `{"type":"text","seq":n,"payload":{...}}`, its input.',
                "messages": of["from client"],
            },
        },
        "components": {"messages": messages, "schemas": schemas},
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def _envelope_schema(frame: type[Frame], group: str) -> dict[str, Any]:
    payload = {"$ref": f"#/components/schemas/{frame.__name__}"}
    if group == "from client":
        return {
            "type": "object",
            "required": ["type", "payload"],
            "properties": {"type": {"const": "control"}, "payload": payload},
        }
    properties: dict[str, Any] = {
        "type": {"const": "text" if group == "text" else "control"},
        "timestamp": {"type": "integer", "description": "Unix ms, given by Redis; never decreasing in a session."},
        "session_id": {"type": "string"},
        "payload": payload,
    }
    if group == "text":
        properties["seq"] = {"type": "integer", "minimum": 1}
        properties["first_seq"] = {"type": "integer", "description": "Of a merged frame: it carries first_seq to seq."}
        properties["ext"] = {"type": "object", "description": "Added by delivery hooks."}
    return {
        "type": "object",
        "required": [n for n in properties if n not in ("first_seq", "ext")],
        "properties": properties,
    }


__all__ = ["asyncapi", "frames_of", "kind_of"]
