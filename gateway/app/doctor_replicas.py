"""Doctor's question about `append.min_replicas`: may we wait, are there enough replicas, and one to spare?"""

from collections.abc import Mapping
from typing import Any

from redis.exceptions import ResponseError

from gateway.app.findings import Finding, fail, ok, warn
from gateway.settings import AppendSettings

TITLE = "append replicas"
_MAX_LAG_SECONDS = 5


def check_replicas(client: Any, info: Mapping[str, Any], settings: AppendSettings) -> list[Finding]:
    """Of one primary, from its INFO; nothing where appends do not wait."""
    needed = settings.min_replicas
    if not needed:
        return []
    try:
        client.execute_command("WAIT", 0, 1)
    except ResponseError as exc:
        return [fail(TITLE, f"WAIT is refused: {exc}", "allow the user: `ACL SETUSER <user> +wait`")]
    states = [info.get(f"slave{number}") for number in range(int(info.get("connected_slaves", 0)))]
    replicas = [state for state in states if isinstance(state, dict) and state.get("state") == "online"]
    well = sum(1 for replica in replicas if int(replica.get("lag", 0)) <= _MAX_LAG_SECONDS)
    shown = f"{well} of {len(states)} replicas answer, append.min_replicas {needed}"
    if well < needed:
        return [fail(TITLE, f"{shown}: every append is refused", "start replicas, or lower append.min_replicas")]
    if well == needed:
        return [warn(TITLE, f"{shown}: one less and every append is refused", "add a replica")]
    return [ok(TITLE, shown)]


__all__ = ["TITLE", "check_replicas"]
