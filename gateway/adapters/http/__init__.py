"""HTTP and WebSocket: the public port for clients and producers, the admin port for operators."""
