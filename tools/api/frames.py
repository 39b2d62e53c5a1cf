"""Every frame's payload as a type, with an example. Tests hold live traffic and the docs against these.

Fields may be added to the wire, so clients ignore what they do not know; here an unknown field is an error, so that
nothing reaches a client that the docs do not name.
"""

from typing import Any

import msgspec

from tools.api.client_frames import CLIENT_CONTROLS
from tools.api.frame_types import Frame
from tools.api.server_frames import SERVER_CONTROLS
from tools.api.text_frames import TEXT_FRAMES, Cut


def envelope(frame: Frame, kind: str) -> dict[str, Any]:
    """The example as it goes over the wire."""
    payload = msgspec.to_builtins(frame)
    payload = {"kind": payload.pop("kind"), **payload}
    if kind == "from client":
        return {"type": "control", "payload": payload}
    head: dict[str, Any] = {"type": "text", "seq": 118} if kind == "text" else {"type": "control"}
    if isinstance(frame, Cut):
        head = {"type": "text", "first_seq": 118, "seq": 124}
    return {**head, "timestamp": 1_796_040_000_000, "session_id": "chat-42", "payload": payload}


def check_frame(frame: dict[str, Any]) -> None:
    """A frame from the gateway. Raises msgspec.ValidationError when the docs do not have it like this."""
    known = {"type", "seq", "first_seq", "timestamp", "session_id", "payload", "ext"}
    if unknown := frame.keys() - known:
        raise msgspec.ValidationError(f"envelope with {sorted(unknown)}")
    if frame["type"] == "control":
        types = tuple(SERVER_CONTROLS)
    else:
        types = tuple(TEXT_FRAMES)
        if frame["payload"]["kind"] not in {kind.__struct_config__.tag for kind in types}:
            return  # the application's own kind
    payload = {name: value for name, value in frame["payload"].items() if name != "late"}  # any text frame may have it
    msgspec.convert(payload, _union(types))


def _union(types: tuple[type[Frame], ...]) -> Any:
    union: Any = types[0]
    for other in types[1:]:
        union = union | other
    return union


__all__ = ["CLIENT_CONTROLS", "SERVER_CONTROLS", "TEXT_FRAMES", "Frame", "check_frame", "envelope"]
