"""What is on the wire, as types: the source of the frames in docs/protocol.md, of asyncapi.yaml and openapi.yaml."""
