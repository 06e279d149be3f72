# pyright: basic, reportMissingImports=false
"""The control of a fleet as an actor of Ray, and the calls by which operators reach it."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError
from ray.util import list_named_actors

from pulse.errors import InputError
from pulse.support.wording import count_of, spell
from streaming.fleet.cluster import MemberFailure
from streaming.fleet.deployment import Deployment
from streaming.fleet.fleet_control import FleetControl, FleetStatus
from streaming.fleet.fleet_table import FleetTable
from streaming.fleet.ray_cluster import MEMBER_TIMEOUT_S, Actors, RayCluster, ask_actors
from streaming.serve.logs import log_to_stderr

CONTROL_NAME = "control"
"""The name of the actor."""
ROUND_PERIOD_S = 0.5
"""The seconds between two rounds of the control."""
CALL_TIMEOUT_S = 30.0
"""A call of an actor that takes longer is an error."""
CONTROL_TIMEOUT_S = 90.0
"""The seconds that the control may be absent: Ray detects the loss of a machine only after a while."""
CONTROL_CALLS = 4
LOOPBACK = ("127.", "localhost", "::1")
logger = logging.getLogger("pulse.fleet")


class ControlActor:
    """A ``FleetControl`` that runs twice per second. Ray restarts it if it is lost."""

    def __init__(self, namespace: str) -> None:
        log_to_stderr("warning")
        self._control = FleetControl(RayCluster(namespace), _table_of(namespace))
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="pulse fleet control", daemon=True).start()

    def call(self, method: str, *arguments: Any) -> Any:
        with self._lock:
            return getattr(self._control, method)(*arguments)

    def end(self) -> None:
        """End all members."""
        with self._lock:
            self._ended.set()
            self._control.end()

    def _watch(self) -> None:
        while not self._ended.wait(ROUND_PERIOD_S):
            with self._lock:
                try:
                    self._control.reconcile(time.monotonic())
                except Exception:
                    logger.exception("a round of the fleet's control failed; it continues with the next one")


class Fleet:
    """A fleet by name, in the Ray cluster at an address.

    address  HOST:PORT of Ray's head; None: the cluster of this machine
    Raises   InputError: no cluster answers
    """

    def __init__(self, name: str = "pulse", address: str | None = None) -> None:
        self.name = name
        if not ray.is_initialized():
            try:
                ray.init(
                    address or "auto", namespace=name, log_to_driver=False, logging_level=logging.WARNING
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise InputError(
                    f"no Ray cluster answers: {error}; start one with ray start --head, and give {spell('address')}"
                ) from None

    def deploy(self, deployment: Deployment) -> None:
        """Start a fleet, or add a version to it.

        Raises InputError: clients could not reach the workers, or a model cannot be opened
        """
        hosts = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
        if len(hosts) > 1 and deployment.server.host.startswith(LOOPBACK):
            raise InputError(
                f"host = {deployment.server.host!r}: clients do not reach the workers on "
                f"{count_of(len(hosts), 'machine')} there; "
                'write host = "0.0.0.0"'
            )
        for model in deployment.server.models:
            if model.path is not None and not model.path.is_absolute():
                raise InputError(f"{model.path}: a fleet needs absolute paths, the same on each machine")
        try:
            ray.remote(ControlActor).options(
                name=CONTROL_NAME,
                namespace=self.name,
                lifetime="detached",
                get_if_exists=True,
                num_cpus=0,
                max_restarts=-1,
                max_concurrency=CONTROL_CALLS,
            ).remote(self.name)
        except ValueError as error:
            raise InputError(f"the fleet {self.name} cannot start: {error}") from None
        self._call("deploy", deployment)

    def status(self) -> FleetStatus:
        """Return the status of the fleet. Raises InputError: no such fleet."""
        return self._call("status")

    def drain(self, name: str) -> None:
        """Empty a worker or a node. Raises InputError: neither has this name, or the control does not answer."""
        self._call("drain", name)

    def set_weight(self, version: str, weight: float) -> None:
        """Set a version's share of the new streams.

        Raises InputError: no version has the name, or the control does not answer
        """
        self._call("set_weight", version, weight)

    def end(self) -> None:
        """End all workers, holders and the control; streams are cut. Raises InputError: the control does not answer."""
        control = self._control()
        try:
            _answer_of(control.end.remote())
        except (RayActorError, GetTimeoutError) as error:
            raise InputError(
                f"the control of the fleet {self.name} does not answer: {error}; try again"
            ) from None
        ray.kill(control)

    def wait(self, done: Callable[[FleetStatus], bool], timeout_s: float) -> FleetStatus:
        """Wait until a condition on the status holds. Raises InputError: it does not in time."""
        until_s = time.monotonic() + timeout_s
        while not done(status := self.status()):
            if time.monotonic() > until_s:
                problems = "; ".join(status.problems) or "pulse fleet status shows the details"
                raise InputError(f"the fleet is not ready after {timeout_s:g} s: {problems}")
            time.sleep(ROUND_PERIOD_S / 2)
        return status

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call the control; retry if it is lost with its machine, since Ray restarts it elsewhere."""
        until_s = time.monotonic() + CONTROL_TIMEOUT_S
        while True:
            try:
                return _answer_of(self._control().call.remote(method, *arguments))
            except (RayActorError, GetTimeoutError) as error:
                if time.monotonic() > until_s:
                    raise InputError(
                        f"the control of the fleet {self.name} does not answer within {CONTROL_TIMEOUT_S:g} s: {error}"
                    ) from None
                time.sleep(ROUND_PERIOD_S)

    def _control(self) -> Any:
        try:
            return ray.get_actor(CONTROL_NAME, self.name)
        except ValueError:
            raise InputError(
                f"this cluster has no fleet {self.name!r}; start it with pulse fleet deploy"
            ) from None


def _answer_of(call: Any) -> Any:
    """Return the answer of an actor. Raises InputError: the actor raised it."""
    try:
        return ray.get(call, timeout=CALL_TIMEOUT_S)
    except RayTaskError as error:
        if isinstance(error.cause, InputError):
            raise InputError(str(error.cause)) from None
        raise


def _table_of(namespace: str) -> FleetTable:
    """Return the newest table of existing members, for a control that restarts."""
    actors: list[Any] = list_named_actors(all_namespaces=True)
    names = [
        actor["name"] for actor in actors if actor["namespace"] == namespace and actor["name"] != CONTROL_NAME
    ]
    answers = ask_actors(Actors(namespace).actors_of(names), "table", (), MEMBER_TIMEOUT_S)
    tables = [table for table in answers.values() if not isinstance(table, MemberFailure)]
    return max(tables, key=lambda table: table.number, default=FleetTable())
