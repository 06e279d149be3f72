"""The plan: a fleet's next actions, from its observed and its requested state. Nothing here executes them."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from pulse.support.record import record
from streaming.fleet.deployment import Deployment
from streaming.fleet.fleet_table import WorkerEntry


@record
class ClusterNode:
    """A node of the cluster: a machine that Ray manages.

    cpus  the total CPUs that Ray counts for it
    """

    id: str
    address: str
    cpus: float


@record
class Start:
    """Start a worker of a version on a node."""

    version: str
    node: str


@record
class Drain:
    """Make a worker hand over its streams."""

    worker: str


@record
class Stop:
    """End a worker that has no streams, or does not accept any yet."""

    worker: str


@record
class FleetPlan:
    """The actions to carry out.

    actions   the actions, in order
    shortage  version -> number of workers for which no node has CPUs
    """

    actions: tuple[Start | Drain | Stop, ...]
    shortage: Mapping[str, int]


@record
class ObservedFleet:
    """The observed state of a fleet.

    nodes        the nodes of the cluster
    workers      the workers in the table
    streams      worker -> number of open streams
    leaving      workers and nodes that an operator has marked to be emptied
    deployments  the wanted deployments, by version
    wanted       version -> number of workers wanted
    """

    nodes: Sequence[ClusterNode]
    workers: Sequence[WorkerEntry]
    streams: Mapping[str, int]
    leaving: Set[str]
    deployments: Mapping[str, Deployment]
    wanted: Mapping[str, int]


def make_plan(observed: ObservedFleet) -> FleetPlan:
    """Start new workers first; drain others once those that stay are enough, and stop them when they are empty.

    If no node has CPUs for a replacement, a leaving worker drains even if the others are too few.
    """
    actions: list[Start | Drain | Stop] = []
    shortage: dict[str, int] = {}
    free = _free_cpus(observed)
    for version, deployment in observed.deployments.items():
        alive = [
            worker for worker in observed.workers if worker.version == version and worker.phase != "draining"
        ]
        staying = [worker for worker in alive if not _leaves(worker, observed.leaving)]
        count = observed.wanted[version]
        starts = _plan_starts(deployment, count - len(staying), free, observed)
        actions += starts
        missing = count - len(staying) - len(starts)
        if missing > 0:
            shortage[version] = missing
        live = [worker for worker in staying if worker.phase == "live"]
        if len(live) >= count or missing > 0:
            actions += [Drain(worker.name) for worker in alive if _leaves(worker, observed.leaving)]
        if len(live) >= count:
            actions += [Stop(worker.name) for worker in staying if worker.phase == "starting"]
        if len(live) > count:
            workers_by_node = Counter(worker.node for worker in live)
            order = sorted(
                live, key=lambda worker: (observed.streams.get(worker.name, 0), -workers_by_node[worker.node])
            )
            actions += [Drain(worker.name) for worker in order[: len(live) - count]]
    actions += [
        Stop(worker.name)
        for worker in observed.workers
        if worker.phase == "draining" and not observed.streams.get(worker.name, 0)
    ]
    return FleetPlan(tuple(actions), shortage)


def _leaves(worker: WorkerEntry, leaving: Set[str]) -> bool:
    return worker.name in leaving or worker.node in leaving


def _free_cpus(observed: ObservedFleet) -> dict[str, float]:
    """Return node -> CPUs that no worker uses, of nodes that stay."""
    free = {node.id: node.cpus for node in observed.nodes if node.id not in observed.leaving}
    for worker in observed.workers:
        if worker.node in free:
            free[worker.node] -= (
                observed.deployments[worker.version].cpus if worker.version in observed.deployments else 0
            )
    return free


def _plan_starts(
    deployment: Deployment, count: int, free: dict[str, float], observed: ObservedFleet
) -> list[Start]:
    """Start workers on nodes with the fewest of this version, then the most CPUs, which are taken from ``free``."""
    workers_by_node = Counter(
        worker.node for worker in observed.workers if worker.version == deployment.version
    )
    starts: list[Start] = []
    for _ in range(max(0, count)):
        fitting = [node for node, cpus in free.items() if cpus >= deployment.cpus]
        if not fitting:
            break
        node = min(fitting, key=lambda name: (workers_by_node[name], -free[name], name))
        free[node] -= deployment.cpus
        workers_by_node[node] += 1
        starts.append(Start(deployment.version, node))
    return starts
