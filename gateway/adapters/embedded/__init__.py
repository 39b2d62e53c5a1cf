"""`--embedded`: a real Valkey server that lives and dies with this process."""

from gateway.adapters.embedded.program import find_program
from gateway.adapters.embedded.server import EmbeddedServer, mortal_command

__all__ = ["EmbeddedServer", "find_program", "mortal_command"]
