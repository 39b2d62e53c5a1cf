"""How scripts publish where they do not run on the only server. Pure; called by scripts.load.

On a cluster PUBLISH in a script reaches every server, but counts the receivers of one: what is counted there are
gateways with a lease. With `redis.shard_publish` a script must not publish at all, for channels are in slots of their
own: it answers what is to be published, and its caller does it.
"""

import re
from typing import Final

_PUBLISH: Final = re.compile(r"\b(?:redis\.)?call\('PUBLISH', ")
_COUNTED: Final = re.compile(r"\breceivers \+ (?=(?:redis\.)?call\('PUBLISH', )")

_BEFORE: Final = """\
local later = { false }
local function publish_later(channel, message)
  later[#later + 1] = channel
  later[#later + 1] = message
  return 1
end
local function main()
"""
_AFTER: Final = """
end
local answer = main()
later[1] = answer == nil and false or answer
return later
"""


def counting_gateways(body: str) -> str:
    """`receivers` is above 0 where there is anybody to publish to."""
    return _COUNTED.sub("1 + ", body)


def publishing_later(body: str) -> str | None:
    """It answers [its answer, channel, message, ...]; None: it publishes nothing."""
    changed, count = _PUBLISH.subn("publish_later(", body)
    return _BEFORE + changed + _AFTER if count else None


__all__ = ["counting_gateways", "publishing_later"]
