"""What goes over the wire: ids, cursors, envelopes, frames, bus messages, close and error codes."""
