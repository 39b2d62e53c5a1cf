"""The gateway's own work over ports: no sockets of its own, no vendor types."""
