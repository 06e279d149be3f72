"""FleetControl: observes a fleet periodically and carries out its plan. Open streams continue without it."""

import logging
import secrets
from collections import Counter, deque
from dataclasses import replace

from pulse.errors import InputError
from pulse.support.not_copyable import NotCopyable
from pulse.support.record import record
from streaming.fleet.cluster import Cluster, Lost
from streaming.fleet.deployment import Deployment
from streaming.fleet.holder import HolderStatus
from streaming.fleet.plan import ClusterNode, Drain, FleetPlan, Observed, Start, make_plan
from streaming.fleet.scaling import Load, Scaling
from streaming.fleet.table import FleetTable, HolderEntry, WorkerEntry
from streaming.fleet.worker import WorkerStatus

MISSES = 4
"""The number of consecutive observations to which a worker may fail to respond."""
START_TIMEOUT_S = 120.0
"""The seconds that a worker may take to start, which includes compiling models."""
RETRY_S = 15.0
"""The seconds to wait, after a worker that failed to start, before the next one of its version."""
PROBLEMS = 20
"""The number of latest problems to keep."""
logger = logging.getLogger("pulse.fleet")


@record
class FleetStatus:
    """The status of a fleet at one moment.

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


class FleetControl(NotCopyable):
    """Controls the fleet. If it is lost, a new one continues from the table that all members have.

    table  the table of an existing fleet
    """

    why_not = "a fleet has one control"

    def __init__(self, cluster: Cluster, table: FleetTable) -> None:
        self._cluster = cluster
        self._table = table
        self._workers = {each.name: each for each in table.workers}
        self._holders = {each.name: each for each in table.holders}
        self._deployments = dict(table.deployments)
        self._coming = dict(table.coming)
        self._leaving: set[str] = set()
        self._scalings: dict[str, Scaling] = {}
        self._refused: dict[str, int] = {}
        self._missed = Counter[str]()
        self._began_s: dict[str, float] = {}
        self._failed_s: dict[str, float] = {}
        self._statuses: dict[str, WorkerStatus] = {}
        self._holder_statuses: dict[str, HolderStatus] = {}
        self._nodes: dict[str, ClusterNode] = {}
        self._wanted_workers: dict[str, int] = {}
        self._plan = FleetPlan((), {})
        self._problems = deque[str](maxlen=PROBLEMS)
        self._lost = 0

    def deploy(self, deployment: Deployment) -> None:
        """Deploy a new version, or change one's number of workers. A new one gets all new streams once it is live.

        Raises  InputError: other models under the name of an existing version
        """
        before = self._deployments.get(deployment.version)
        if before is not None and before.server != deployment.server:
            raise InputError(
                f"version {deployment.version} is deployed with other settings; give the new ones another version"
            )
        if before is None and self._deployments:
            self._coming[deployment.version] = deployment.weight
        if deployment.version in self._coming:
            deployment = replace(deployment, weight=0.0)
        self._deployments[deployment.version] = deployment
        self._failed_s.pop(deployment.version, None)

    def set_weight(self, version: str, weight: float) -> None:
        """Set a version's share of the new streams, relative to the others. Raises InputError."""
        if version not in self._deployments:
            raise InputError(f"no version is called {version!r}; there are {', '.join(self._deployments)}")
        self._coming.pop(version, None)
        self._deployments[version] = replace(self._deployments[version], weight=weight)

    def drain(self, name: str) -> None:
        """Empty a worker, or a node by its id or address. Raises InputError: there is no such worker or node."""
        nodes = [each.id for each in self._nodes.values() if name in (each.id, each.address)]
        if not nodes and name not in self._workers:
            names = [*self._workers, *(each.address for each in self._nodes.values())]
            raise InputError(f"no worker or node is called {name!r}; there are {', '.join(names)}")
        self._leaving.update(nodes or [name])

    def status(self) -> FleetStatus:
        """The status as last observed."""
        return FleetStatus(
            table=self._table,
            nodes=tuple(self._nodes.values()),
            workers=dict(self._statuses),
            holders=dict(self._holder_statuses),
            wanted=dict(self._wanted_workers),
            shortage=dict(self._plan.shortage),
            leaving=tuple(sorted(self._leaving)),
            problems=tuple(self._problems),
            lost=self._lost,
        )

    def reconcile(self, now_s: float) -> None:
        """Take one step: observe the fleet, carry out the plan, tell all members of changes.

        now_s  the time of a monotonic clock
        """
        self._nodes = {each.id: each for each in self._cluster.nodes()}
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

    def _poll_holders(self) -> None:
        answers = self._cluster.ask(list(self._holders), "status")
        self._holder_statuses = {
            name: each for name, each in answers.items() if isinstance(each, HolderStatus)
        }
        for name, holder in list(self._holders.items()):
            if holder.node not in self._nodes or isinstance(answers.get(name), Lost):
                self._note(f"holder {name} is lost")
                del self._holders[name]
        for node in self._nodes.values():
            if node.id not in {each.node for each in self._holders.values()}:
                name = f"holder-{secrets.token_hex(4)}"
                self._cluster.start_holder(name, node)
                self._holders[name] = HolderEntry(name, node.id)

    def _poll_workers(self, now_s: float) -> None:
        answers = self._cluster.ask(list(self._workers), "status")
        for name, worker in list(self._workers.items()):
            answer = answers.get(name)
            if isinstance(answer, WorkerStatus):
                self._missed[name] = 0
                self._statuses[name] = answer
                phase = "draining" if answer.draining else "live"
                self._workers[name] = replace(worker, url=answer.url, phase=phase)
            elif isinstance(answer, Lost) or worker.node not in self._nodes:
                why = answer.why if isinstance(answer, Lost) else "its node is gone"
                if worker.phase == "starting" and isinstance(answer, Lost):
                    self._failed_s[worker.version] = now_s
                self._drop_worker(name, why)
            elif worker.phase == "starting":
                if now_s - self._began_s.setdefault(name, now_s) > START_TIMEOUT_S:
                    self._failed_s[worker.version] = now_s
                    self._drop_worker(name, f"it has not begun within {START_TIMEOUT_S:g} s")
            else:
                self._missed[name] += 1
                if self._missed[name] >= MISSES:
                    self._drop_worker(name, f"{MISSES} times in a row it did not answer")

    def _drop_worker(self, name: str, why: str) -> None:
        self._note(f"worker {name} is lost: {why}")
        self._lost += 1
        self._cluster.end(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        del self._workers[name]
        self._statuses.pop(name, None)
        self._missed.pop(name, None)
        self._refused.pop(name, None)
        self._began_s.pop(name, None)
        self._leaving.discard(name)

    def _direct_new_streams(self) -> None:
        """Direct all new streams to a version that has become live."""
        for version, weight in list(self._coming.items()):
            live = [
                each for each in self._workers.values() if (each.version, each.phase) == (version, "live")
            ]
            if len(live) >= self._deployments[version].least:
                del self._coming[version]
                for name, each in self._deployments.items():
                    self._deployments[name] = replace(each, weight=weight if name == version else 0.0)

    def _scale(self, now_s: float) -> None:
        self._leaving &= {*self._workers, *self._nodes}
        for version, deployed in list(self._deployments.items()):
            deployment = replace(deployed, weight=self._coming.get(version, deployed.weight))
            workers = [each for each in self._workers.values() if each.version == version]
            staying = [
                each
                for each in workers
                if each.phase != "draining" and not {each.name, each.node} & self._leaving
            ]
            scaling = self._scalings.setdefault(version, Scaling())
            load = self._load([each.name for each in workers])
            self._wanted_workers[version] = scaling.wanted_workers(deployment, load, len(staying), now_s)
            if deployment.weight == 0 and not workers and not self._wanted_workers[version]:
                for by_version in (self._deployments, self._scalings, self._wanted_workers):
                    del by_version[version]

    def _load(self, names: list[str]) -> Load:
        load, refused, streams = 0.0, 0, 0
        for name in names:
            status = self._statuses.get(name)
            if status is not None:
                load, streams = load + status.filled, streams + status.streams
                refused += status.refused - self._refused.get(name, 0)
                self._refused[name] = status.refused
        return Load(load, refused, streams)

    def _run_plan(self, now_s: float) -> None:
        streams = {name: each.streams for name, each in self._statuses.items()}
        observed = Observed(
            list(self._nodes.values()),
            list(self._workers.values()),
            streams,
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
                    self._workers[name] = WorkerEntry(name, action.node, action.version)
                    self._began_s[name] = now_s
            elif isinstance(action, Drain):
                self._workers[action.worker] = replace(self._workers[action.worker], phase="draining")
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
            tuple(self._workers.values()),
            tuple(self._holders.values()),
            dict(self._deployments),
            dict(self._coming),
        )
        if table != self._table:
            self._table = replace(table, number=self._table.number + 1)
            names = [*self._workers, *self._holders]
        else:
            names = [name for name, each in self._statuses.items() if each.table < self._table.number]
        if names:
            self._cluster.ask(names, "set_table", self._table)

    def _note(self, problem: str) -> None:
        logger.warning(problem)
        self._problems.append(problem)
