"""The table of a fleet: what all its members know. Plain data."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from pulse.support.record import record
from streaming.fleet.deployment import Deployment

Phase = Literal["starting", "live", "draining"]


@record
class WorkerEntry:
    """A worker: a server of streams.

    node     that it runs on
    version  of its models
    url      ws://HOST:PORT; empty while it starts
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
    """A fleet at a moment.

    number       grows with each change
    deployments  what is wanted, by version
    coming       version -> the weight that it gets when its workers are live; until then it has 0
    """

    number: int = 0
    workers: tuple[WorkerEntry, ...] = ()
    holders: tuple[HolderEntry, ...] = ()
    deployments: Mapping[str, Deployment] = field(default_factory=dict[str, Deployment])
    coming: Mapping[str, float] = field(default_factory=dict[str, float])

    def live(self, version: str) -> list[WorkerEntry]:
        """The workers of a version that take streams."""
        return [each for each in self.workers if each.version == version and each.phase == "live"]

    @property
    def shares(self) -> dict[str, float]:
        """Version -> the part of new streams that it gets; of those that have workers that take streams."""
        weights = {name: each.weight for name, each in self.deployments.items() if self.live(name)}
        whole = sum(weights.values())
        return {name: weight / whole for name, weight in weights.items() if weight > 0} if whole else {}
