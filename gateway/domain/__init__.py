"""Pure rules: data in, data out; no I/O and no clock."""
