"""The plan of a fleet: workers are spread, replaced before they drain, and stopped when they are empty."""

from typing import Any

import pytest

from streaming.fleet.deployment import Deployment
from streaming.fleet.fleet_plan import ClusterNode, Drain, ObservedFleet, Start, Stop, make_plan
from streaming.fleet.fleet_table import WorkerEntry
from streaming.fleet.scaling import LINGER_S, Load, Scaling

NODES = [ClusterNode(name, f"10.0.0.{number}", 2.0) for number, name in enumerate("abc")]


def workers(**places: tuple[str, str]) -> list[WorkerEntry]:
    """Worker entries of these names, each on a node and in a phase."""
    return [WorkerEntry(name, place[0], "1", "", place[1]) for name, place in places.items()]


def plan_of(
    workers_there: list[WorkerEntry] | tuple[Any, ...] = (),
    count: int = 2,
    streams: dict[str, int] | None = None,
    leaving: list[str] | tuple[Any, ...] = (),
    nodes: list[ClusterNode] = NODES,
    **changes: float,
) -> tuple[Any, ...]:
    observed = ObservedFleet(
        nodes,
        list(workers_there),
        streams or {},
        set(leaving),
        {"1": Deployment(max_workers=20, **changes)},
        {"1": count},
    )
    plan = make_plan(observed)
    return list(plan.actions), dict(plan.shortage)


def test_the_first_workers_are_spread() -> None:
    actions, shortage = plan_of(count=3)
    assert {action.node for action in actions} == set("abc")
    assert not shortage
    actions, shortage = plan_of(count=7)
    assert len(actions) == 6
    assert shortage == {"1": 1}


def test_lost_workers_are_replaced_on_the_emptiest_machine() -> None:
    actions, _ = plan_of(workers(x=("a", "live"), y=("b", "starting")), count=3)
    assert actions == [Start("1", "c")]


def test_a_plan_without_changes_is_empty() -> None:
    assert plan_of(workers(x=("a", "live"), y=("b", "live"))) == ([], {})
    assert plan_of(workers(x=("a", "live"), y=("b", "starting"))) == ([], {})


def test_the_emptiest_of_too_many_workers_drains_and_is_stopped() -> None:
    workers_there = workers(x=("a", "live"), y=("b", "live"), z=("c", "live"))
    assert plan_of(workers_there, streams={"x": 3, "y": 1, "z": 2})[0] == [Drain("y")]
    workers_there = workers(x=("a", "live"), y=("b", "draining"), z=("c", "live"))
    assert plan_of(workers_there, streams={"x": 3, "y": 1, "z": 2})[0] == []
    assert plan_of(workers_there, streams={"x": 3, "z": 2})[0] == [Stop("y")]


def test_a_starting_worker_drains_no_other() -> None:
    workers_there = workers(x=("a", "live"), y=("b", "starting"), z=("c", "starting"))
    assert plan_of(workers_there, count=2)[0] == []


def test_an_unwanted_starting_worker_is_stopped() -> None:
    workers_there = workers(x=("a", "live"), y=("b", "live"), z=("c", "starting"))
    assert plan_of(workers_there, count=2)[0] == [Stop("z")]
    assert plan_of(workers(z=("c", "starting")), count=0)[0] == [Stop("z")]


@pytest.mark.parametrize("leaving", ["x", "a"])
def test_a_leaving_worker_drains_when_its_replacement_is_live(leaving: str) -> None:
    workers_there = workers(x=("a", "live"), y=("b", "live"))
    assert plan_of(workers_there, leaving=[leaving])[0] == [Start("1", "c")]
    workers_there = workers(x=("a", "live"), y=("b", "live"), z=("c", "starting"))
    assert plan_of(workers_there, leaving=[leaving])[0] == []
    workers_there = workers(x=("a", "live"), y=("b", "live"), z=("c", "live"))
    assert plan_of(workers_there, leaving=[leaving])[0] == [Drain("x")]


def test_without_room_a_leaving_worker_drains_unreplaced() -> None:
    workers_there = workers(x=("a", "live"), y=("b", "live"))
    assert plan_of(workers_there, leaving=["a"], nodes=NODES[:2], cpus=2.0) == ([Drain("x")], {"1": 1})


def test_two_versions_share_the_nodes() -> None:
    old, new = Deployment("1", max_workers=3, weight=0), Deployment("2", max_workers=3)
    workers_there = [WorkerEntry("x", "a", "1", "", "live"), WorkerEntry("y", "b", "1", "", "live")]
    observed = ObservedFleet(NODES, workers_there, {"x": 1}, set(), {"1": old, "2": new}, {"1": 2, "2": 2})
    assert make_plan(observed).actions == (Start("2", "c"), Start("2", "a"))


def wanted_workers(scaling: Scaling, load: Load, count: int, now_s: float, **changes: int) -> int:
    return scaling.wanted_workers(Deployment(**changes), load, count, now_s)


def test_workers_are_added_at_once() -> None:
    assert wanted_workers(Scaling(), Load(0.1, 0, 1), 2, 0.0) == 2
    assert wanted_workers(Scaling(), Load(1.9, 0, 50), 2, 0.0) == 4
    assert wanted_workers(Scaling(), Load(0.1, 3, 50), 2, 0.0) == 3
    assert wanted_workers(Scaling(), Load(90.0, 0, 50), 2, 0.0) == 8


def test_workers_are_taken_away_after_a_while_one_by_one() -> None:
    scaling = Scaling()
    assert wanted_workers(scaling, Load(0.2, 0, 5), 4, 0.0) == 4
    assert wanted_workers(scaling, Load(0.2, 0, 5), 4, 59.0) == 4
    assert wanted_workers(scaling, Load(0.2, 0, 5), 4, 60.0) == 3
    assert wanted_workers(scaling, Load(0.2, 0, 5), 3, 61.0) == 3
    assert wanted_workers(scaling, Load(2.3, 0, 5), 3, 90.0) == 4
    assert wanted_workers(scaling, Load(0.2, 0, 5), 4, 121.0) == 4


def test_a_version_without_new_streams_ends_after_its_last_one() -> None:
    scaling = Scaling()
    assert wanted_workers(scaling, Load(0.1, 0, 1), 2, 0.0, weight=0) == 2
    assert wanted_workers(scaling, Load(0.0, 0, 0), 2, 10.0, weight=0) == 2
    assert wanted_workers(scaling, Load(0.1, 0, 1), 2, 12.0, weight=0) == 2
    assert wanted_workers(scaling, Load(0.0, 0, 0), 2, 20.0, weight=0) == 2
    assert wanted_workers(scaling, Load(0.0, 0, 0), 2, 20.0 + LINGER_S, weight=0) == 0


def test_an_ending_version_replaces_its_last_worker() -> None:
    assert wanted_workers(Scaling(), Load(0.1, 0, 1), 1, 0.0, weight=0) == 2
