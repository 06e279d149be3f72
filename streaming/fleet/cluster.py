"""What a fleet asks of the cluster that it runs on; ``ray_cluster`` has Ray's."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pulse.support.record import record
from streaming.fleet.deployment import Deployment
from streaming.fleet.plan import Node


@record
class Lost:
    """The answer of a member that has ended, or failed.

    why  in words
    """

    why: str


class Cluster(Protocol):
    """Machines, and members that run there: workers and holders, by their names."""

    def nodes(self) -> Sequence[Node]:
        """The machines that are there now."""
        ...

    def start_worker(self, name: str, node: Node, deployment: Deployment) -> None:
        """Begin a worker; returns at once."""
        ...

    def start_holder(self, name: str, node: Node) -> None:
        """Begin a holder of checkpoints; returns at once."""
        ...

    def ask(self, names: Sequence[str], method: str, *arguments: Any) -> Mapping[str, Any]:
        """Call a method of members at once: name -> its answer, or ``Lost``; the late ones are missing."""
        ...

    def end(self, name: str) -> None:
        """Let a member end at once."""
        ...
