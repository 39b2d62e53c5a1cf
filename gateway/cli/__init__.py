"""Commands: one file each; parse, call gateway.app, print."""
