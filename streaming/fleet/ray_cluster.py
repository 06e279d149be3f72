# pyright: basic, reportMissingImports=false
"""A fleet on Ray: its members are actors, and calls to them go through Ray. Pulses do not."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from streaming.fleet.cluster import MemberFailure
from streaming.fleet.deployment import Deployment
from streaming.fleet.fleet_plan import ClusterNode
from streaming.fleet.fleet_table import FleetTable
from streaming.fleet.fleet_worker import FleetWorker, WorkerStatus
from streaming.fleet.holder import CheckpointHolder
from streaming.serve.logs import log_to_stderr
from streaming.serve.running import open_programs

MEMBER_TIMEOUT_S = 2.0
"""The seconds that members may take to answer the control."""
HOLDER_TIMEOUT_S = 0.3
"""The seconds that holders may take to answer a worker, while a client waits."""
MAX_HOLDER_BYTES = 1 << 30
"""The memory for checkpoints on each machine; beyond it, new ones are refused."""
CONCURRENT_CALLS = 8
"""The number of concurrent calls of a worker: one that compiles does not block the others."""


def ask_actors(
    actors: Mapping[str, Any], method: str, arguments: Sequence[Any], timeout_s: float
) -> dict[str, Any]:
    """Call a method of several actors concurrently: name -> answer or ``MemberFailure``; late ones are missing."""
    calls = {getattr(actor, method).remote(*arguments): name for name, actor in actors.items()}
    answers: dict[str, Any] = {}
    ready = ray.wait(list(calls), num_returns=len(calls), timeout=timeout_s)[0] if calls else []
    for call in ready:
        try:
            answers[calls[call]] = ray.get(call, timeout=timeout_s)
        except RayTaskError as error:
            answers[calls[call]] = MemberFailure(str(error.cause or error))
        except (ActorUnavailableError, GetTimeoutError):
            continue  # it may answer later
        except RayActorError as error:
            answers[calls[call]] = MemberFailure(str(error).partition("\n")[0])
    return answers


class Actors:
    """Actors by their names, looked up once."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._actors: dict[str, Any] = {}

    def actors_of(self, names: Sequence[str]) -> dict[str, Any]:
        """Look up actors that are not known yet; return name -> actor, of those that exist."""
        actors = self._actors  # other threads may replace it meanwhile
        for name in names:
            if name not in actors:
                try:
                    actors[name] = ray.get_actor(name, self._namespace)
                except (ValueError, RayError):
                    continue
        return {name: actors[name] for name in names if name in actors}

    def keep(self, names: Sequence[str]) -> None:
        """Forget all actors but these."""
        self._actors = {name: self._actors[name] for name in names if name in self._actors}

    def add(self, name: str, actor: Any) -> None:
        """Add an actor that has just started."""
        self._actors[name] = actor


class RayHolders:
    """A worker's access to the holders."""

    def __init__(self, namespace: str) -> None:
        self._actors = Actors(namespace)

    def look_up(self, names: Sequence[str]) -> None:
        """Look them up before they are needed."""
        self._actors.keep(names)
        self._actors.actors_of(names)

    def ask(self, names: Sequence[str], method: str, *arguments: Any) -> dict[str, Any]:
        """Return name -> answer, of those that answer in time."""
        answers = ask_actors(self._actors.actors_of(names), method, arguments, HOLDER_TIMEOUT_S)
        return {name: answer for name, answer in answers.items() if not isinstance(answer, MemberFailure)}


class WorkerActor:
    """A ``FleetWorker`` in a separate process. Its streams pass through its socket, not through Ray."""

    def __init__(self, name: str, node: str, host: str, namespace: str) -> None:
        self._name, self._node, self._host = name, node, host
        self._holders = RayHolders(namespace)
        self._worker: FleetWorker | None = None
        self._table = FleetTable()

    def start(self, deployment: Deployment) -> None:
        log_to_stderr("warning")
        programs = open_programs(deployment.server)
        worker = FleetWorker(self._name, self._node, self._host, deployment, programs, self._holders)
        worker.set_table(self._table)
        self._worker = worker

    def status(self) -> WorkerStatus | None:
        return None if self._worker is None else self._worker.status()

    def set_table(self, table: FleetTable) -> None:
        self._holders.look_up([holder.name for holder in table.holders])
        if table.number > self._table.number:
            self._table = table
        if self._worker is not None:
            self._worker.set_table(table)

    def table(self) -> FleetTable:
        return self._table

    def drain(self) -> None:
        if self._worker is not None:
            self._worker.drain()

    def stop(self) -> None:
        if self._worker is not None:
            self._worker.stop()

    def process(self) -> int:
        """Return the process id."""
        return os.getpid()


class RayCluster:
    """The ``Cluster`` of Ray that this process is connected to.

    namespace  the fleet's name
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._actors = Actors(namespace)
        self._starts: dict[str, Any] = {}

    def nodes(self) -> list[ClusterNode]:
        """Return the machines present now."""
        return [
            ClusterNode(node["NodeID"], node["NodeManagerAddress"], node["Resources"].get("CPU", 0.0))
            for node in ray.nodes()
            if node["Alive"]
        ]

    def start_worker(self, name: str, node: ClusterNode, deployment: Deployment) -> None:
        """Start a worker; returns at once."""
        arguments = (name, node.id, node.address, self._namespace)
        actor = self._start(
            WorkerActor, name, node, cpus=deployment.cpus, calls=CONCURRENT_CALLS, arguments=arguments
        )
        self._starts[name] = actor.start.remote(deployment)

    def start_holder(self, name: str, node: ClusterNode) -> None:
        """Start a holder; returns at once."""
        self._start(CheckpointHolder, name, node, cpus=0, calls=1, arguments=(MAX_HOLDER_BYTES,))

    def ask(self, names: Sequence[str], method: str, *arguments: Any) -> dict[str, Any]:
        """Return name -> answer or ``MemberFailure``; late and starting members are missing."""
        actors = self._actors.actors_of(names)
        answers = ask_actors(actors, method, arguments, MEMBER_TIMEOUT_S)
        for name in names:
            if name not in actors:
                answers[name] = MemberFailure("there is no such actor")
        if method == "status":
            self._mark_failed_starts(answers)
            return {name: answer for name, answer in answers.items() if answer is not None}
        return answers

    def end(self, name: str) -> None:
        """End a member at once."""
        for actor in self._actors.actors_of([name]).values():
            ray.kill(actor)
        self._starts.pop(name, None)

    def _mark_failed_starts(self, answers: dict[str, Any]) -> None:
        """Mark workers that failed to start as lost, although they answer."""
        for name in self._starts.keys() & answers.keys():
            start = self._starts[name]
            if ray.wait([start], timeout=0)[0]:
                del self._starts[name]
                try:
                    ray.get(start)
                except RayError as error:
                    answers[name] = MemberFailure(str(getattr(error, "cause", None) or error))

    def _start(
        self,
        actor_class: type,
        name: str,
        node: ClusterNode,
        cpus: float,
        calls: int,
        arguments: tuple[Any, ...],
    ) -> Any:
        actor = (
            ray.remote(actor_class)
            .options(
                name=name,
                namespace=self._namespace,
                lifetime="detached",
                num_cpus=cpus,
                max_restarts=0,
                max_concurrency=calls,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
            )
            .remote(*arguments)
        )
        self._actors.add(name, actor)
        return actor
