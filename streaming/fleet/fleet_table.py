"""The table of a fleet, known to all its members. Plain data."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from pulse.support.record import record
from streaming.fleet.deployment import Deployment

Phase = Literal["starting", "live", "draining"]


@record
class WorkerEntry:
    """A worker: a server of streams.

    name     its name
    node     the node that it runs on
    version  the version of its models
    url      ws://HOST:PORT; empty while it starts
    phase    starting, live or draining
    """

    name: str
    node: str
    version: str
    url: str = ""
    phase: Phase = "starting"


@record
class HolderEntry:
    """A holder of checkpoints."""

    name: str
    node: str


@record
class FleetTable:
    """The members and deployments of a fleet at one moment.

    number           increases with each change
    workers          the servers of streams
    holders          the processes that keep checkpoints
    deployments      the wanted deployments, by version
    pending_weights  version -> its weight once its workers are live; until then, its weight is 0
    leaving          workers and nodes to be emptied
    """

    number: int = 0
    workers: tuple[WorkerEntry, ...] = ()
    holders: tuple[HolderEntry, ...] = ()
    deployments: Mapping[str, Deployment] = field(default_factory=dict[str, Deployment])
    pending_weights: Mapping[str, float] = field(default_factory=dict[str, float])
    leaving: tuple[str, ...] = ()

    def live_workers(self, version: str) -> list[WorkerEntry]:
        """Return the workers of a version that accept streams."""
        return [worker for worker in self.workers if worker.version == version and worker.phase == "live"]

    @property
    def shares(self) -> dict[str, float]:
        """Version -> its share of new streams, for versions whose workers accept streams."""
        weights = {
            name: deployment.weight
            for name, deployment in self.deployments.items()
            if self.live_workers(name)
        }
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items() if weight > 0} if total else {}
