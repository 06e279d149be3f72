"""This project behind the interface of a peer."""

from bench.peers.peer import Feed, Outputs
from pulse.program.program import Program


class PulsePeer:
    """This project: one stream of a compiled program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._state = program.spawn()

    def step(self, feed: Feed) -> Outputs:
        """Run one pulse."""
        return self._state.step(feed)

    def delay(self, output: str) -> int | None:
        """Return the delay of the model."""
        return None
