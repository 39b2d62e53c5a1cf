"""Benchmarks: each figure is CPU time of a real server process, beside an ordinary gateway in the same run."""
