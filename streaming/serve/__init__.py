"""A server of streams: models behind a WebSocket, each stream in a lane; see docs/serve.md and docs/protocol.md."""
