"""The demo: embedded Valkey, gateways as real processes, readers that go through faults, a tally that compares."""
