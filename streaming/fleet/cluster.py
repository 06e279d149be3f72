"""The interface of the cluster that a fleet runs on; ``ray_cluster`` implements it with Ray."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pulse.support.record import record
from streaming.fleet.deployment import Deployment
from streaming.fleet.fleet_plan import ClusterNode


@record
class MemberFailure:
    """Stands for the answer of a member that has ended or failed.

    reason  why, for the log
    """

    reason: str


class Cluster(Protocol):
    """Machines and the members that run on them: workers and holders, by name."""

    def nodes(self) -> Sequence[ClusterNode]:
        """Return the machines present now."""
        ...

    def start_worker(self, name: str, node: ClusterNode, deployment: Deployment) -> None:
        """Start a worker; returns at once."""
        ...

    def start_holder(self, name: str, node: ClusterNode) -> None:
        """Start a holder of checkpoints; returns at once."""
        ...

    def ask(self, names: Sequence[str], method: str, *arguments: Any) -> Mapping[str, Any]:
        """Call a method of several members concurrently: name -> answer or ``MemberFailure``; late ones are missing."""
        ...

    def end(self, name: str) -> None:
        """End a member at once."""
        ...
