"""What both SDKs must do, in files that no language owns, and what tries them: see README.md beside this."""
