"""Thousands of clients in a process: they read, judge what they read, and come back as the SDKs do, for little CPU."""
