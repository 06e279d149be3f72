"""The costs that Python adds to a step, call by call."""

from bench.performance.calls import MACHINE, call_times


def test_the_calls_are_timed() -> None:
    rows = call_times(rounds=3, count=5)
    assert [row.name for row in rows] == [MACHINE, "State.step(outputs)", "State.step", "Session.push"]
    assert all(row.us > 0 for row in rows)
    assert rows[0].over_us == 0
