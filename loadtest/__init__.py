"""Tools that load, break and judge running gateways. Nothing here is part of a gateway."""
