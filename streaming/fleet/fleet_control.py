"""FleetControl: observes a fleet periodically and carries out its plan. Open streams continue without it."""

import logging
import secrets
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pulse.errors import InputError
from pulse.support.naming import require_name, unknown_name
from pulse.support.not_copyable import NotCopyable
from pulse.support.record import record
from streaming.fleet.cluster import Cluster, MemberFailure
from streaming.fleet.deployment import Deployment
from streaming.fleet.fleet_plan import ClusterNode, Drain, FleetPlan, ObservedFleet, Start, make_plan
from streaming.fleet.fleet_table import FleetTable, HolderEntry, WorkerEntry
from streaming.fleet.fleet_worker import WorkerStatus
from streaming.fleet.holder import HolderStatus
from streaming.fleet.scaling import Load, Scaling

MAX_MISSES = 4
"""A worker that misses this many observations in a row is lost."""
START_TIMEOUT_S = 120.0
"""The seconds that a worker may take to start, which includes compiling models."""
RETRY_S = 15.0
"""The seconds to wait, after a worker that failed to start, before the next one of its version."""
MAX_PROBLEMS = 20
"""Older problems are forgotten."""
logger = logging.getLogger("pulse.fleet")


@record
class FleetStatus:
    """The status of a fleet at one moment.

    table     the members and deployments
    nodes     the nodes of the cluster
    workers   name -> what the worker reports
    holders   name -> what the holder reports
    wanted    version -> number of workers wanted
    shortage  version -> number of workers for which no node has CPUs
    leaving   workers and nodes to be emptied
    problems  the latest problems, as text
    lost      the number of workers that ended by themselves since the control started
    """

    table: FleetTable
    nodes: tuple[ClusterNode, ...]
    workers: dict[str, WorkerStatus]
    holders: dict[str, HolderStatus]
    wanted: dict[str, int]
    shortage: dict[str, int]
    leaving: tuple[str, ...]
    problems: tuple[str, ...]
    lost: int


@dataclass
class ObservedWorker:
    """A worker, and the observations of the control.

    entry    its entry in the table
    status   its last status; None before its first answer
    missed   the number of observations in a row that it has not answered
    refused  the refused streams that ``Scaling`` has taken into account
    began_s  the time since which it starts; None if it started under an earlier control
    """

    entry: WorkerEntry
    status: WorkerStatus | None = None
    missed: int = 0
    refused: int = 0
    began_s: float | None = None


class FleetControl(NotCopyable, reason="a fleet has one control"):
    """Controls the fleet. If it is lost, a new one continues from the table that all members have.

    table  the table of an existing fleet
    """

    def __init__(self, cluster: Cluster, table: FleetTable) -> None:
        self._cluster = cluster
        self._table = table
        self._workers = {entry.name: ObservedWorker(entry) for entry in table.workers}
        self._holders = {entry.name: entry for entry in table.holders}
        self._deployments = dict(table.deployments)
        self._coming = dict(table.coming)
        self._leaving: set[str] = set()
        self._scalings: dict[str, Scaling] = {}
        self._failed_s: dict[str, float] = {}
        self._holder_statuses: dict[str, HolderStatus] = {}
        self._nodes: dict[str, ClusterNode] = {}
        self._wanted_workers: dict[str, int] = {}
        self._plan = FleetPlan((), {})
        self._problems = deque[str](maxlen=MAX_PROBLEMS)
        self._lost = 0

    def deploy(self, deployment: Deployment) -> None:
        """Deploy a new version, or change one's number of workers. A new one gets all new streams once it is live.

        Raises  InputError: other models under the name of an existing version
        """
        present = self._deployments.get(deployment.version)
        if present is not None and present.server != deployment.server:
            raise InputError(
                f"version {deployment.version} is deployed with other settings; give the new ones another version"
            )
        if present is None and self._deployments:
            self._coming[deployment.version] = deployment.weight
        if deployment.version in self._coming:
            deployment = replace(deployment, weight=0.0)
        self._deployments[deployment.version] = deployment
        self._failed_s.pop(deployment.version, None)

    def set_weight(self, version: str, weight: float) -> None:
        """Set a version's share of the new streams, relative to the others.

        Raises InputError: no version has the name
        """
        require_name("version", version, self._deployments, InputError)
        self._coming.pop(version, None)
        self._deployments[version] = replace(self._deployments[version], weight=weight)

    def drain(self, name: str) -> None:
        """Empty a worker, or a node by its id or address. Raises InputError: there is no such worker or node."""
        nodes = [node.id for node in self._nodes.values() if name in (node.id, node.address)]
        if not nodes and name not in self._workers:
            names = [*self._workers, *(node.address for node in self._nodes.values())]
            raise InputError(unknown_name("worker or machine", name, names))
        self._leaving.update(nodes or [name])

    def status(self) -> FleetStatus:
        """Return the last observed status."""
        return FleetStatus(
            table=self._table,
            nodes=tuple(self._nodes.values()),
            workers=self._statuses,
            holders=dict(self._holder_statuses),
            wanted=dict(self._wanted_workers),
            shortage=dict(self._plan.shortage),
            leaving=tuple(sorted(self._leaving)),
            problems=tuple(self._problems),
            lost=self._lost,
        )

    def reconcile(self, now_s: float) -> None:
        """Take one step: observe the fleet, carry out the plan, inform all members of changes.

        now_s  the time of a monotonic clock
        """
        self._nodes = {node.id: node for node in self._cluster.nodes()}
        self._poll_holders()
        self._poll_workers(now_s)
        self._direct_new_streams()
        self._publish_table()
        self._scale(now_s)
        self._run_plan(now_s)
        self._publish_table()

    def end(self) -> None:
        """End all members."""
        self._cluster.ask(list(self._workers), "stop")
        for name in (*self._workers, *self._holders):
            self._cluster.end(name)
        self._workers, self._holders, self._deployments = {}, {}, {}

    @property
    def _entries(self) -> tuple[WorkerEntry, ...]:
        return tuple(worker.entry for worker in self._workers.values())

    @property
    def _statuses(self) -> dict[str, WorkerStatus]:
        return {name: worker.status for name, worker in self._workers.items() if worker.status is not None}

    def _poll_holders(self) -> None:
        answers = self._cluster.ask(list(self._holders), "status")
        self._holder_statuses = {
            name: answer for name, answer in answers.items() if isinstance(answer, HolderStatus)
        }
        for name, holder in list(self._holders.items()):
            if holder.node not in self._nodes or isinstance(answers.get(name), MemberFailure):
                self._note(f"holder {name} is lost")
                del self._holders[name]
        for node in self._nodes.values():
            if node.id not in {holder.node for holder in self._holders.values()}:
                name = f"holder-{secrets.token_hex(4)}"
                self._cluster.start_holder(name, node)
                self._holders[name] = HolderEntry(name, node.id)

    def _poll_workers(self, now_s: float) -> None:
        answers = self._cluster.ask(list(self._workers), "status")
        for name, worker in list(self._workers.items()):
            answer = answers.get(name)
            entry = worker.entry
            if isinstance(answer, WorkerStatus):
                worker.missed, worker.status = 0, answer
                phase = "draining" if answer.draining else "live"
                worker.entry = replace(entry, url=answer.url, phase=phase)
            elif isinstance(answer, MemberFailure) or entry.node not in self._nodes:
                reason = answer.reason if isinstance(answer, MemberFailure) else "its machine is gone"
                if entry.phase == "starting" and isinstance(answer, MemberFailure):
                    self._failed_s[entry.version] = now_s
                self._drop_worker(name, reason)
            elif entry.phase == "starting":
                if worker.began_s is None:
                    worker.began_s = now_s
                if now_s - worker.began_s > START_TIMEOUT_S:
                    self._failed_s[entry.version] = now_s
                    self._drop_worker(name, f"it has not started within {START_TIMEOUT_S:g} s")
            else:
                worker.missed += 1
                if worker.missed >= MAX_MISSES:
                    self._drop_worker(name, f"it did not answer {MAX_MISSES} times in a row")

    def _drop_worker(self, name: str, reason: str) -> None:
        self._note(f"worker {name} is lost: {reason}")
        self._lost += 1
        self._cluster.end(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        del self._workers[name]
        self._leaving.discard(name)

    def _direct_new_streams(self) -> None:
        """Direct all new streams to a version that has become live."""
        for version, weight in list(self._coming.items()):
            live = [entry for entry in self._entries if (entry.version, entry.phase) == (version, "live")]
            if len(live) >= self._deployments[version].min_workers:
                del self._coming[version]
                for name, deployment in self._deployments.items():
                    self._deployments[name] = replace(deployment, weight=weight if name == version else 0.0)

    def _scale(self, now_s: float) -> None:
        self._leaving &= {*self._workers, *self._nodes}
        for version, deployed in list(self._deployments.items()):
            deployment = replace(deployed, weight=self._coming.get(version, deployed.weight))
            workers = [worker for worker in self._workers.values() if worker.entry.version == version]
            staying = [
                worker
                for worker in workers
                if worker.entry.phase != "draining"
                and not {worker.entry.name, worker.entry.node} & self._leaving
            ]
            scaling = self._scalings.setdefault(version, Scaling())
            load = _take_load(workers)
            self._wanted_workers[version] = scaling.wanted_workers(deployment, load, len(staying), now_s)
            if deployment.weight == 0 and not workers and not self._wanted_workers[version]:
                for by_version in (self._deployments, self._scalings, self._wanted_workers):
                    del by_version[version]

    def _run_plan(self, now_s: float) -> None:
        observed = ObservedFleet(
            list(self._nodes.values()),
            self._entries,
            {name: status.streams for name, status in self._statuses.items()},
            self._leaving,
            self._deployments,
            self._wanted_workers,
        )
        self._plan = make_plan(observed)
        for action in self._plan.actions:
            if isinstance(action, Start):
                if now_s - self._failed_s.get(action.version, -RETRY_S) >= RETRY_S:
                    name = f"{action.version}-{secrets.token_hex(3)}"
                    self._cluster.start_worker(
                        name, self._nodes[action.node], self._deployments[action.version]
                    )
                    entry = WorkerEntry(name, action.node, action.version)
                    self._workers[name] = ObservedWorker(entry, began_s=now_s)
            elif isinstance(action, Drain):
                worker = self._workers[action.worker]
                worker.entry = replace(worker.entry, phase="draining")
                self._publish_table()  # the others are informed before it starts
                self._cluster.ask([action.worker], "drain")
            else:
                self._cluster.ask([action.worker], "stop")
                self._cluster.end(action.worker)
                self._forget(action.worker)

    def _publish_table(self) -> None:
        """Send the table to all members if it has changed, else to those that have an older one."""
        table = FleetTable(
            self._table.number,
            self._entries,
            tuple(self._holders.values()),
            dict(self._deployments),
            dict(self._coming),
        )
        if table != self._table:
            self._table = replace(table, number=self._table.number + 1)
            names = [*self._workers, *self._holders]
        else:
            names = [name for name, status in self._statuses.items() if status.table < self._table.number]
        if names:
            self._cluster.ask(names, "set_table", self._table)

    def _note(self, problem: str) -> None:
        logger.warning(problem)
        self._problems.append(problem)


def _take_load(workers: Iterable[ObservedWorker]) -> Load:
    """Return the load of workers; refused streams are counted once."""
    filled, refused, streams = 0.0, 0, 0
    for worker in workers:
        status = worker.status
        if status is not None:
            filled, streams = filled + status.filled, streams + status.streams
            refused += status.refused - worker.refused
            worker.refused = status.refused
    return Load(filled, refused, streams)
