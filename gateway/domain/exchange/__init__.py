"""Between clients and agents: inbox items, asks and what answers them, trace context. Pure."""
