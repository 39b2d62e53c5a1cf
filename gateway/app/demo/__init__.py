"""The demo: embedded Valkey, gateways as real processes, clients that read through faults, and a tally that compares."""
