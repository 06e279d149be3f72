"""The problems of a live run: their causes and the advice."""

import json
from dataclasses import fields, replace
from math import inf, nan

import pytest

from pulse.support.wording import use_spelling
from streaming.cli.spelling import as_options
from streaming.latency import LatencySummary
from streaming.realtime.realtime_settings import RealtimeSetting
from streaming.stats.live_statistics import Counters, DelayBreakdown, StatisticsSummary
from streaming.stats.problems import (
    COUNTERS,
    GROUPS,
    Problem,
    count_of,
    describe_counters,
    find_problems,
    group_count,
)
from streaming.stats.setup import Setup
from tests.streaming.stats.simulated_statistics import DELAY, SETUP, Simulation, add_counters

EACH = Counters(*range(1, len(fields(Counters)) + 1))
PLAIN = {"callbacks", "pulses", "frames_in", "frames_out", "frames_cut"}


@pytest.fixture(scope="module")
def good() -> StatisticsSummary:
    *_, statistics = Simulation().series(2)
    return statistics.summary()


def problems_of(statistics: StatisticsSummary, setup: Setup = SETUP, **counters: int) -> list[Problem]:
    """The problems that these counters report."""
    return find_problems(setup, replace(statistics, counters=replace(statistics.counters, **counters)))


def test_counters_add_and_subtract() -> None:
    assert add_counters(EACH, EACH).difference_from(EACH) == EACH
    assert EACH.difference_from(EACH) == Counters()
    assert EACH.xruns == sum(
        getattr(EACH, f"{a}_{b}flows") for a in ("input", "output") for b in ("under", "over")
    )


def test_a_delay_is_the_sum_of_its_stages() -> None:
    assert DelayBreakdown(1, 2, 4, 8, 16, 32, 0).total_s == 63
    assert [seconds for _, seconds in DelayBreakdown(1, 2, 4, 8, 16, 32, 0).stages] == [1, 2, 4, 8, 16, 32]
    assert DELAY.total_s == pytest.approx(0.0421167)


def test_statistics_are_json_even_with_broken_levels() -> None:
    *_, statistics = Simulation().series(1)
    broken = replace(statistics, levels_in=(inf, 0.5), levels_out=(nan,))
    document = json.loads(json.dumps(broken.as_dict(), allow_nan=False))
    assert (document["levels_in"], document["levels_out"]) == ([None, 0.5], [None])
    assert document["total"]["count"] == document["counters"]["pulses"] == 100
    assert document["total"]["deadline_us"] == 10_000
    assert document["waiting"]["missed"] is None


def test_every_problem_counter_has_a_group_and_a_text() -> None:
    assert {*COUNTERS, *PLAIN} == {field.name for field in fields(Counters)}
    for name in COUNTERS:
        text = describe_counters(Counters(**{name: 1}))
        assert text.startswith("1 ")
        assert describe_counters(Counters(**{name: 2000})) == f"2,000 {text[2:]}s"
        assert sum(group_count(Counters(**{name: 3}), group) for group in GROUPS) == 3
    assert describe_counters(Counters(1, 2, 3, frames_out=4, frames_cut=5)) == ""
    assert count_of(0, "pulse") == "0 pulses"


def test_a_good_run_has_no_problem(good: StatisticsSummary) -> None:
    assert problems_of(good) == []


@pytest.mark.parametrize(
    ("counters", "name", "message"),
    [
        ({"frames_silent": 480}, "silent", "480 frames (10.0 ms) of silence"),
        ({"frames_lost": 1}, "lost", "did not fit into the buffer"),
        ({"frames_skipped": 9}, "lost", "9 frames made too late and not played"),
        ({"pulses_dropped": 1}, "lost", "1 pulse dropped for being late"),
        ({"output_underflows": 2}, "xrun", "2 output underflows"),
        ({"stalls": 1}, "device", 'reconnect="keep" opens it again'),
        (
            {"stalls": 2, "reopened": 1},
            "device",
            "2 stalls of the device, which stopped calling, 1 reopening",
        ),
    ],
)
def test_each_problem_has_a_description_and_a_remedy(
    good: StatisticsSummary, counters: dict[str, int], name: str, message: str
) -> None:
    (problem,) = problems_of(good, **counters)
    assert problem.name == name
    assert message.lower() in str(problem).lower()
    assert problem.help


def slow(latency: LatencySummary, ms: int) -> LatencySummary:
    return replace(latency, mean_us=ms * 1e3, p99_us=ms * 1e3, max_us=ms * 1e3)


def test_the_cause_of_late_pulses_is_named(good: StatisticsSummary) -> None:
    def why(statistics):
        (problem,) = problems_of(statistics, missed=3)
        return str(problem)

    model = why(replace(good, compute=slow(good.compute, 12)))
    assert "computing takes 12.00 ms on average for a pulse of 10.00 ms" in model
    assert "weights=" in model
    tail = why(replace(good, compute=replace(good.compute, p99_us=11e3, max_us=12e3)))
    assert "computing alone takes 11.00 ms at p99" in tail
    interrupted = why(replace(good, compute=replace(good.compute, max_us=12e3)))
    assert "computing was held up, for 12.00 ms at most" in interrupted
    waiting = why(replace(good, waiting=replace(good.waiting, max_us=12e3)))
    assert "a pulse waited for at most 12.00 ms" in waiting
    assert "raise `ulimit -r`" in waiting


def test_help_depends_on_granted_settings(good: StatisticsSummary) -> None:
    late = replace(good, waiting=replace(good.waiting, max_us=12e3))
    (without_priority,) = problems_of(late, replace(SETUP, realtime_settings=()), missed=1)
    assert "priority=70" in without_priority.help
    (with_priority,) = problems_of(
        late, replace(SETUP, realtime_settings=(RealtimeSetting("priority", "70", "70"),)), missed=1
    )
    assert "headroom_s=" in with_priority.help
    with use_spelling(as_options):
        (option,) = problems_of(late, replace(SETUP, realtime_settings=()), missed=1)
    assert "--priority 70" in option.help


def test_an_xrun_is_explained_by_the_slowest_part(good: StatisticsSummary) -> None:
    def why(statistics):
        (problem,) = problems_of(statistics, input_overflows=1)
        return str(problem)

    assert "callback took at most 11.00 ms" in why(replace(good, callback=slow(good.callback, 11)))
    assert "called after at most 30.00 ms" in why(replace(good, interval=slow(good.interval, 30)))
    assert "the cause is in the audio system" in why(good)
    chosen = replace(SETUP, block_frames=0)
    (problem,) = problems_of(good, chosen, input_overflows=1)
    assert "the cause is in the audio system" in str(problem)
    (problem,) = problems_of(replace(good, callback=slow(good.callback, 30)), chosen, input_overflows=1)
    assert "a block is 10.0" in str(problem)
