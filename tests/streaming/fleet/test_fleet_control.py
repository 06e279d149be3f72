"""The control of a fleet, on a simulated cluster: it replaces, scales, drains, and resumes after its own loss."""

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from pulse.errors import InputError
from streaming.fleet.cluster import MemberFailure
from streaming.fleet.deployment import Deployment
from streaming.fleet.fleet_control import MAX_MISSES, RETRY_S, START_TIMEOUT_S, FleetControl
from streaming.fleet.fleet_plan import ClusterNode
from streaming.fleet.fleet_report import FleetReport
from streaming.fleet.fleet_table import FleetTable
from streaming.fleet.fleet_worker import WorkerStatus
from streaming.fleet.holder import HolderStatus
from streaming.fleet.scaling import LINGER_S
from streaming.serve.settings import ModelSettings, ServerSettings

HELD = HolderStatus(2, 46_000, 3, 69_000, 0, 0)


class ScriptedCluster:
    """Members whose answers the test scripts: a status, ``MemberFailure``, or nothing (None)."""

    def __init__(self, nodes: str = "abc") -> None:
        self.running_nodes = {name: ClusterNode(name, f"10.0.0.{ord(name) - 96}", 4.0) for name in nodes}
        self.workers = {}
        self.holders = {}
        self.drained, self.ended, self.tables = [], [], {}

    def nodes(self) -> list[ClusterNode]:
        return list(self.running_nodes.values())

    def start_worker(self, name: str, node: ClusterNode, deployment: Deployment) -> None:
        self.workers[name] = None

    def start_holder(self, name: str, node: ClusterNode) -> None:
        self.holders[name] = HELD

    def ask(self, names: list[str], method: str, *arguments: FleetTable) -> dict[str, Any]:
        members = {**self.workers, **self.holders}
        if method == "set_table":
            self.tables.update(dict.fromkeys(names, arguments[0]))
        elif method == "drain":
            self.drained += names
            for name in names:
                self.workers[name] = replace(members[name], draining=True)
        return {name: members[name] for name in names if members.get(name) is not None}

    def end(self, name: str) -> None:
        self.ended.append(name)

    def begin(self, **changes: float) -> None:
        """Let every starting worker become live."""
        for name, status in self.workers.items():
            if status is None:
                self.workers[name] = WorkerStatus(f"ws://{name}", 0, 0.1, 0, 0, 0, False, 0)
        self.say(**changes)

    def say(self, *names: str, **changes: float) -> None:
        for name in names or self.workers:
            self.workers[name] = replace(self.workers[name], **changes)


@pytest.fixture
def cluster() -> ScriptedCluster:
    return ScriptedCluster()


@pytest.fixture
def control(cluster: ScriptedCluster) -> FleetControl:
    """A control whose two workers are live."""
    fleet_control = FleetControl(cluster, FleetTable())
    fleet_control.deploy(Deployment())
    fleet_control.reconcile(0.0)
    cluster.begin()
    fleet_control.reconcile(0.5)
    return fleet_control


def phases(control: FleetControl) -> dict[str, str]:
    return {worker.name: worker.phase for worker in control.status().table.workers}


def live_workers(control: FleetControl, version: str = "1") -> list[str]:
    return [worker.name for worker in control.status().table.live_workers(version)]


def test_first_reconciliations_start_and_inform_workers(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    table = control.status().table
    assert len(live_workers(control)) == 2
    assert {holder.node for holder in table.holders} == set("abc")
    assert all(worker.url == f"ws://{worker.name}" for worker in table.workers)
    assert set(cluster.tables) == {*cluster.workers, *cluster.holders}
    assert all(table_told == table for table_told in cluster.tables.values())
    number = table.number
    control.reconcile(1.0)
    assert control.status().table.number == number


def test_a_lost_worker_is_replaced_and_all_are_informed(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    first, other = live_workers(control)
    cluster.workers[first] = MemberFailure("it was killed")
    control.reconcile(1.0)
    assert live_workers(control) == [other]
    assert first in cluster.ended
    assert len(phases(control)) == 2
    assert cluster.tables[other] == control.status().table
    assert "it was killed" in control.status().problems[-1]
    assert control.status().lost == 1


def test_a_worker_that_does_not_answer_is_given_up_after_a_while(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    first, _ = live_workers(control)
    cluster.workers[first] = None
    for second in range(MAX_MISSES - 1):
        control.reconcile(1.0 + second)
        assert first in phases(control)
    control.reconcile(9.0)
    assert first not in phases(control)
    assert first in cluster.ended


def test_a_worker_that_cannot_begin_is_not_tried_again_at_once(cluster: ScriptedCluster) -> None:
    control = FleetControl(cluster, FleetTable())
    control.deploy(Deployment())
    control.reconcile(0.0)
    for name in cluster.workers:
        cluster.workers[name] = MemberFailure("model.onnx: no such file")
    control.reconcile(1.0)
    assert not phases(control)
    assert "no such file" in control.status().problems[-1]
    control.reconcile(RETRY_S)
    assert not phases(control)
    control.reconcile(1.0 + RETRY_S)
    assert len(phases(control)) == 2


def test_a_worker_that_does_not_begin_in_time_is_given_up(cluster: ScriptedCluster) -> None:
    control = FleetControl(cluster, FleetTable())
    control.deploy(Deployment())
    control.reconcile(0.0)
    control.reconcile(START_TIMEOUT_S - 1)
    assert len(phases(control)) == 2
    control.reconcile(START_TIMEOUT_S + 1)
    assert not phases(control)
    assert "has not started" in control.status().problems[-1]


def test_the_workers_and_the_holder_of_a_lost_node_are_replaced(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    (node,) = {
        worker.node for worker in control.status().table.workers if worker.name == live_workers(control)[0]
    }
    table = control.status().table
    cluster.workers.update(dict.fromkeys(worker.name for worker in table.workers if worker.node == node))
    cluster.holders.update(dict.fromkeys(holder.name for holder in table.holders if holder.node == node))
    del cluster.running_nodes[node]
    control.reconcile(1.0)
    table = control.status().table
    assert node not in {member.node for member in (*table.workers, *table.holders)}
    assert len(table.workers) == 2


def test_load_adds_a_worker_and_idleness_drains_one(cluster: ScriptedCluster, control: FleetControl) -> None:
    cluster.say(filled=0.8, streams=20)
    control.reconcile(1.0)
    cluster.begin(filled=0.1, streams=5)
    control.reconcile(2.0)
    assert len(live_workers(control)) == 3
    assert not cluster.drained
    control.reconcile(61.0)
    control.reconcile(62.0)
    (name,) = cluster.drained
    assert phases(control)[name] == "draining"
    assert name not in cluster.ended
    others = [worker for worker in live_workers(control) if worker != name]
    assert all(
        name not in {worker.name for worker in cluster.tables[other].live_workers("1")} for other in others
    )
    cluster.say(name, streams=0)
    control.reconcile(63.0)
    assert name in cluster.ended
    assert name not in phases(control)


def test_refusals_add_one_worker(cluster: ScriptedCluster, control: FleetControl) -> None:
    cluster.say(refused=2)
    control.reconcile(1.0)
    assert len(phases(control)) == 3
    cluster.begin()
    control.reconcile(2.0)
    assert len(phases(control)) == 3


def test_a_node_is_drained_after_its_replacement_is_live(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    worker = control.status().table.workers[0]
    cluster.say(streams=3)
    control.drain(cluster.running_nodes[worker.node].address)
    control.reconcile(1.0)
    assert not cluster.drained
    assert len(phases(control)) == 3
    cluster.begin()
    control.reconcile(2.0)
    assert cluster.drained == [worker.name]
    with pytest.raises(InputError, match=r"unknown worker or machine '10\.9\.9\.9'"):
        control.drain("10.9.9.9")


def test_a_new_version_gets_streams_when_it_is_live(cluster: ScriptedCluster, control: FleetControl) -> None:
    cluster.say(streams=3)
    old = live_workers(control)
    control.deploy(Deployment("2", min_workers=1))
    control.reconcile(1.0)
    assert control.status().table.shares == {"1": 1.0}, "the old one has all until the new one is live"
    control.reconcile(2 * LINGER_S)
    assert set(live_workers(control)) == set(old)
    cluster.begin()
    control.reconcile(31.0)
    assert control.status().table.shares == {"2": 1.0}
    assert set(live_workers(control)) == set(old)
    assert len(live_workers(control, "2")) == 1
    control.set_weight("1", 3.0)
    control.reconcile(32.0)
    assert control.status().table.shares == {"1": 0.75, "2": 0.25}
    control.set_weight("1", 0.0)
    for name in old:
        cluster.say(name, streams=0)
    for seconds in range(4):
        control.reconcile(33.0 + seconds * LINGER_S)
    assert set(control.status().table.deployments) == {"2"}
    assert set(old) <= set(cluster.ended)
    with pytest.raises(InputError, match="unknown version '1'"):
        control.set_weight("1", 1.0)


def test_a_version_that_cannot_begin_leaves_the_old_one_alone(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    control.deploy(Deployment("2", min_workers=1))
    control.reconcile(1.0)
    for name, status in cluster.workers.items():
        cluster.workers[name] = MemberFailure("no such model") if status is None else status
    for seconds in range(3):
        control.reconcile(2.0 + LINGER_S * seconds)
    assert control.status().table.shares == {"1": 1.0}
    assert len(live_workers(control)) == 2
    again = FleetControl(cluster, control.status().table)
    again.reconcile(100.0)
    assert again.status().table.pending_weights == {"2": 1.0}
    control.set_weight("2", 0.0)
    for seconds in range(3):
        control.reconcile(60.0 + LINGER_S * seconds)
    assert set(control.status().table.deployments) == {"1"}


def test_a_deployment_without_a_share_is_refused(cluster: ScriptedCluster, control: FleetControl) -> None:
    for version in ("1", "2"):
        with pytest.raises(InputError, match=r"weight = 0: .*set-weight"):
            control.deploy(Deployment(version, weight=0.0))
    for second in range(3):
        control.reconcile(1.0 + second * LINGER_S)
    assert control.status().table.shares == {"1": 1.0}


def test_the_weight_of_a_version_that_starts_can_change(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    control.deploy(Deployment("2", min_workers=1))
    control.deploy(Deployment("2", min_workers=1, weight=3.0))
    with pytest.raises(InputError, match="weight = -1"):
        control.set_weight("2", -1.0)
    control.reconcile(1.0)
    assert control.status().table.pending_weights == {"2": 3.0}
    cluster.begin()
    control.reconcile(2.0)
    control.set_weight("1", 1.0)
    control.reconcile(3.0)
    assert control.status().table.shares == {"1": 0.25, "2": 0.75}


def test_the_settings_of_a_version_cannot_change(control: FleetControl) -> None:
    other = Deployment(server=ServerSettings((ModelSettings(name="other"),), port=0))
    with pytest.raises(InputError, match="another version"):
        control.deploy(other)
    control.deploy(Deployment(min_workers=3))


def test_another_control_continues_with_the_table_of_the_first(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    table = control.status().table
    again = FleetControl(cluster, table)
    again.reconcile(0.0)
    assert again.status().table == table
    assert len(cluster.workers) == 2


def test_another_control_waits_for_holders_that_start(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    table = control.status().table
    cluster.holders.update(dict.fromkeys(cluster.holders))
    again = FleetControl(cluster, table)
    for second in (0.0, 1.0, 2.0, 3.0, 4.0, START_TIMEOUT_S):
        again.reconcile(second)
        assert again.status().table.holders == table.holders
    again.reconcile(START_TIMEOUT_S + 1)
    assert not set(again.status().table.holders) & set(table.holders)


def test_another_control_counts_only_new_refusals(cluster: ScriptedCluster, control: FleetControl) -> None:
    cluster.say(refused=7)
    again = FleetControl(cluster, control.status().table)
    again.reconcile(0.0)
    assert len(phases(again)) == 2
    cluster.say(*live_workers(again)[:1], refused=8)
    again.reconcile(1.0)
    assert len(phases(again)) == 3


def test_another_control_continues_to_empty_a_node(cluster: ScriptedCluster, control: FleetControl) -> None:
    worker = control.status().table.workers[0]
    control.drain(cluster.running_nodes[worker.node].address)
    control.reconcile(1.0)
    cluster.begin()
    again = FleetControl(cluster, control.status().table)
    again.reconcile(2.0)
    assert cluster.drained == [worker.name]
    again.reconcile(3.0)
    again.reconcile(4.0)
    assert worker.node not in {entry.node for entry in again.status().table.workers}


def test_a_holder_that_does_not_answer_is_replaced_after_a_while(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    first, *others = control.status().table.holders
    cluster.holders[first.name] = None
    for second in range(MAX_MISSES - 1):
        control.reconcile(1.0 + second)
        assert first in control.status().table.holders
    control.reconcile(9.0)
    table = control.status().table
    assert set(others) < set(table.holders)
    assert first not in table.holders
    assert {holder.node for holder in table.holders} == set("abc")
    assert first.name in cluster.ended
    assert (
        control.status().problems[-1]
        == f"holder {first.name} is lost: it did not answer {MAX_MISSES} times in a row"
    )
    assert control.status().lost == 0, "this counts workers"


def test_a_holder_may_take_as_long_to_start_as_a_worker(cluster: ScriptedCluster) -> None:
    cluster.start_holder = lambda name, node: cluster.holders.setdefault(name)
    control = FleetControl(cluster, FleetTable())
    control.reconcile(0.0)
    first = control.status().table.holders
    for second in range(MAX_MISSES + 1):
        control.reconcile(1.0 + second)
    assert control.status().table.holders == first
    control.reconcile(START_TIMEOUT_S + 1)
    assert not set(first) & set(control.status().table.holders)


def test_the_table_is_sent_again_to_members_with_an_older_one(
    cluster: ScriptedCluster, control: FleetControl
) -> None:
    number = control.status().table.number
    cluster.say(table=number)
    for name in cluster.holders:
        cluster.holders[name] = replace(HELD, table=number)
    control.reconcile(1.0)
    worker, holder = live_workers(control)[0], control.status().table.holders[0].name
    cluster.say(worker, table=number - 1)
    cluster.holders[holder] = replace(HELD, table=number - 1)
    cluster.tables.clear()
    control.reconcile(2.0)
    assert set(cluster.tables) == {worker, holder}


def test_workers_without_a_node_are_a_shortage(cluster: ScriptedCluster, control: FleetControl) -> None:
    control.deploy(Deployment(min_workers=2, cpus=3.0, max_workers=8))
    control.deploy(Deployment("2", min_workers=4, cpus=3.0))
    control.reconcile(1.0)
    assert control.status().shortage["2"] == 3


def test_end_ends_all_workers_and_holders(cluster: ScriptedCluster, control: FleetControl) -> None:
    control.end()
    assert set(cluster.ended) == {*cluster.workers, *cluster.holders}


def test_the_report_lists_counts_and_problems(cluster: ScriptedCluster, control: FleetControl) -> None:
    cluster.workers[live_workers(control)[0]] = MemberFailure("it was killed")
    control.reconcile(1.0)
    report = FleetReport(control.status())
    text = "\n".join(section.text() for section in report.sections())
    for word in ("1 of 2", "starting", "10.0.0.1", "2 to 8", "100%", "it was killed", "denoiser"):
        assert word in text, word
    values = report.as_dict()
    assert values["versions"]["1"]["wanted"] == 2
    assert len(values["workers"]) == 2
    assert "token" not in str(values)
