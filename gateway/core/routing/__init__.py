"""The route table at work: which one is in force, and what it changes for messages that are not delivered text."""
