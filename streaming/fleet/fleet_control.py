"""FleetControl: observes a fleet periodically and carries out its plan. Open streams continue without it."""

import logging
import secrets
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

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
"""A member that misses this many observations in a row is lost."""
START_TIMEOUT_S = 120.0
"""The seconds that a member may take to start, which includes compiling models."""
RETRY_S = 15.0
"""The seconds to wait, after a worker that failed to start, before the next one of its version."""
MAX_PROBLEMS = 20
"""Older problems are forgotten."""
logger = logging.getLogger("pulse.fleet")
EntryT = TypeVar("EntryT", WorkerEntry, HolderEntry)
StatusT = TypeVar("StatusT", WorkerStatus, HolderStatus)


@record
class FleetStatus:
    """The status of a fleet at one moment.

    table     the members and deployments
    nodes     the nodes of the cluster
    workers   name -> what the worker reports
    holders   name -> what the holder reports
    wanted    version -> number of workers wanted
    shortage  version -> number of workers for which no node has CPUs
    problems  the latest problems, as text
    lost      the number of workers that ended by themselves since the control started
    """

    table: FleetTable
    nodes: tuple[ClusterNode, ...]
    workers: dict[str, WorkerStatus]
    holders: dict[str, HolderStatus]
    wanted: dict[str, int]
    shortage: dict[str, int]
    problems: tuple[str, ...]
    lost: int


@dataclass
class ObservedMember(Generic[EntryT, StatusT]):
    """A member, and the observations of the control.

    entry     its entry in the table
    starting  whether it has never answered
    began_s   the time since which it starts; None if it started under an earlier control
    status    its last status; None before its first answer to this control
    missed    the number of observations in a row that it has not answered
    """

    entry: EntryT
    starting: bool = False
    began_s: float | None = None
    status: StatusT | None = None
    missed: int = 0

    def record(self, status: StatusT) -> None:
        """Record an answer."""
        self.status, self.starting, self.missed = status, False, 0

    def record_silence(self, now_s: float) -> str | None:
        """Record that it did not answer. Returns why it is lost; None if it may still answer."""
        if self.starting:
            self.began_s = now_s if self.began_s is None else self.began_s
            has_failed = now_s - self.began_s > START_TIMEOUT_S
            return f"it has not started within {START_TIMEOUT_S:g} s" if has_failed else None
        self.missed += 1
        return f"it did not answer {MAX_MISSES} times in a row" if self.missed >= MAX_MISSES else None


@dataclass
class ObservedWorker(ObservedMember[WorkerEntry, WorkerStatus]):
    """A worker, and the observations of the control.

    refused  the refused streams that ``Scaling`` has taken into account, or that an earlier control has seen
    """

    refused: int = 0

    def record(self, status: WorkerStatus) -> None:
        """Record an answer, with the address and the phase in it."""
        if self.status is None:
            self.refused = status.refused
        super().record(status)
        phase = "draining" if status.draining else "live"
        self.entry = replace(self.entry, url=status.url, phase=phase)


class FleetControl(NotCopyable, reason="a fleet has one control"):
    """Controls the fleet. If it is lost, a new one continues from the table that all members have.

    table  the table of an existing fleet
    """

    def __init__(self, cluster: Cluster, table: FleetTable) -> None:
        self._cluster = cluster
        self._table = table
        self._workers = {
            entry.name: ObservedWorker(entry, starting=entry.phase == "starting") for entry in table.workers
        }
        self._holders = {
            entry.name: ObservedMember[HolderEntry, HolderStatus](entry, starting=True)
            for entry in table.holders
        }
        self._deployments = dict(table.deployments)
        self._pending_weights = dict(table.pending_weights)
        self._leaving = set(table.leaving)
        self._scalings: dict[str, Scaling] = {}
        self._failed_s: dict[str, float] = {}
        self._nodes: dict[str, ClusterNode] = {}
        self._wanted_workers: dict[str, int] = {}
        self._plan = FleetPlan((), {})
        self._problems = deque[str](maxlen=MAX_PROBLEMS)
        self._lost = 0

    def deploy(self, deployment: Deployment) -> None:
        """Deploy a new version, or change one's number of workers. A new one gets all new streams once it is live.

        Raises  InputError: other models under the name of an existing version, or a weight of 0
        """
        version, weight = deployment.version, deployment.weight
        if weight == 0:
            raise InputError(
                f"weight = 0: version {version} would get no streams; give a weight above 0, or retire the version "
                "with pulse fleet set-weight"
            )
        present = self._deployments.get(version)
        if present is not None and present.server != deployment.server:
            raise InputError(
                f"version {version} is deployed with other settings; give the new ones another version"
            )
        if version in self._pending_weights or (present is None and self._deployments):
            self._pending_weights[version] = weight
            deployment = replace(deployment, weight=0.0)
        self._deployments[version] = deployment
        self._failed_s.pop(version, None)
        self._publish_table()

    def set_weight(self, version: str, weight: float) -> None:
        """Set a version's share of the new streams, relative to the others.

        Raises InputError: no version has the name, or the weight is negative
        """
        require_name("version", version, self._deployments, InputError)
        self._deployments[version] = replace(self._deployments[version], weight=weight)
        self._pending_weights.pop(version, None)
        self._publish_table()

    def drain(self, name: str) -> None:
        """Empty a worker, or a node by its id or address. Raises InputError: there is no such worker or node."""
        nodes = [node.id for node in self._nodes.values() if name in (node.id, node.address)]
        if not nodes and name not in self._workers:
            names = [*self._workers, *(node.address for node in self._nodes.values())]
            raise InputError(unknown_name("worker or machine", name, names))
        self._leaving.update(nodes or [name])
        self._publish_table()

    def status(self) -> FleetStatus:
        """Return the last observed status."""
        return FleetStatus(
            table=self._table,
            nodes=tuple(self._nodes.values()),
            workers=_statuses(self._workers.values()),
            holders=_statuses(self._holders.values()),
            wanted=dict(self._wanted_workers),
            shortage=dict(self._plan.shortage),
            problems=tuple(self._problems),
            lost=self._lost,
        )

    def reconcile(self, now_s: float) -> None:
        """Take one step: observe the fleet, carry out the plan, inform all members of changes.

        now_s  the time of a monotonic clock
        """
        self._nodes = {node.id: node for node in self._cluster.nodes()}
        self._poll_members(now_s)
        self._start_holders(now_s)
        self._direct_new_streams()
        self._publish_table()
        self._scale(now_s)
        self._run_plan(now_s)
        self._publish_table()

    def end(self) -> None:
        """End all members."""
        self._cluster.ask(list(self._workers), "stop")
        for member in self._members:
            self._end_member(member.entry.name)
        self._deployments = {}

    @property
    def _entries(self) -> tuple[WorkerEntry, ...]:
        return tuple(worker.entry for worker in self._workers.values())

    @property
    def _members(self) -> list[ObservedMember[Any, Any]]:
        return [*self._workers.values(), *self._holders.values()]

    def _poll_members(self, now_s: float) -> None:
        """Record what members answer, and drop those that are lost."""
        members = self._members
        answers = self._cluster.ask([member.entry.name for member in members], "status")
        for member in members:
            answer = answers.get(member.entry.name)
            if isinstance(answer, MemberFailure):
                self._drop(member, answer.reason, now_s)
            elif answer is not None:
                member.record(answer)
            elif member.entry.node not in self._nodes:
                self._drop(member, "its machine is gone", now_s)
            elif reason := member.record_silence(now_s):
                self._drop(member, reason, now_s)

    def _start_holders(self, now_s: float) -> None:
        """Start a holder on each node that has none."""
        for node_id in self._nodes.keys() - {holder.entry.node for holder in self._holders.values()}:
            name = f"holder-{secrets.token_hex(4)}"
            self._cluster.start_holder(name, self._nodes[node_id])
            self._holders[name] = ObservedMember(HolderEntry(name, node_id), starting=True, began_s=now_s)

    def _drop(self, member: ObservedMember[Any, Any], reason: str, now_s: float) -> None:
        entry, is_worker = member.entry, isinstance(member, ObservedWorker)
        self._note(f"{'worker' if is_worker else 'holder'} {entry.name} is lost: {reason}")
        self._end_member(entry.name)
        if is_worker:
            self._lost += 1
            if member.starting:
                self._failed_s[entry.version] = now_s

    def _end_member(self, name: str) -> None:
        self._cluster.end(name)
        self._workers.pop(name, None)
        self._holders.pop(name, None)
        self._leaving.discard(name)

    def _direct_new_streams(self) -> None:
        """Direct all new streams to a version that has become live."""
        for version, weight in list(self._pending_weights.items()):
            live = [entry for entry in self._entries if (entry.version, entry.phase) == (version, "live")]
            if len(live) >= self._deployments[version].min_workers:
                del self._pending_weights[version]
                for name, deployment in self._deployments.items():
                    self._deployments[name] = replace(deployment, weight=weight if name == version else 0.0)

    def _scale(self, now_s: float) -> None:
        self._leaving &= {*self._workers, *self._nodes}
        for version, deployed in list(self._deployments.items()):
            deployment = replace(deployed, weight=self._pending_weights.get(version, deployed.weight))
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
            {name: status.streams for name, status in _statuses(self._workers.values()).items()},
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
                    self._workers[name] = ObservedWorker(entry, starting=True, began_s=now_s)
            elif isinstance(action, Drain):
                worker = self._workers[action.worker]
                worker.entry = replace(worker.entry, phase="draining")
                self._publish_table()  # the others are informed before it starts
                self._cluster.ask([action.worker], "drain")
            else:
                self._cluster.ask([action.worker], "stop")
                self._end_member(action.worker)

    def _publish_table(self) -> None:
        """Send the table to all members if it has changed, else to those that have an older one."""
        table = FleetTable(
            self._table.number,
            self._entries,
            tuple(holder.entry for holder in self._holders.values()),
            dict(self._deployments),
            dict(self._pending_weights),
            tuple(sorted(self._leaving)),
        )
        members = self._members
        if table != self._table:
            self._table = replace(table, number=self._table.number + 1)
        else:
            members = [member for member in members if member.status and member.status.table < table.number]
        if members:
            self._cluster.ask([member.entry.name for member in members], "set_table", self._table)

    def _note(self, problem: str) -> None:
        logger.warning(problem)
        self._problems.append(problem)


def _statuses(members: Iterable[ObservedMember[EntryT, StatusT]]) -> dict[str, StatusT]:
    return {member.entry.name: member.status for member in members if member.status is not None}


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
