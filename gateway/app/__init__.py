"""Composition root: builds adapters and core from settings and runs them."""
