"""Connections that are lost while a stream runs."""

from tests.streaming.serve.servers import RunningServer


def cut_all(server: RunningServer) -> None:
    """End every connection of a server without a word, and take no more."""
    loop = server.server.servers[0].get_loop()

    def cut():
        for listening in server.server.servers:
            listening.close()
        for connection in list(server.server.server_state.connections):
            connection.transport.abort()

    loop.call_soon_threadsafe(cut)
