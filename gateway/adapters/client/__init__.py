"""The client side of the wire in Python: read a session, publish into one. Used by the command line and the demo."""
