"""Ingest of runs: what a producer streams becomes items of one run, appended by one writer at a time (design.md 6)."""
