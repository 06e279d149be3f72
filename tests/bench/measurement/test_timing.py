"""The timing loop, with steppers that only count."""

from bench.measurement import timing


def test_alternate_runs_each_stepper_equally_often() -> None:
    calls = {"a": 0, "b": 0}

    def count(name):
        calls[name] += 1

    result = timing.alternate({name: lambda name=name: count(name) for name in calls}, 3, 20, warmup_steps=5)
    assert calls == {"a": 65, "b": 65}
    assert all(len(rounds) == 3 for rounds in result.rounds.values())


def test_comparisons_take_medians_and_ratios_per_round() -> None:
    rounds = {
        "a": [timing.Percentiles(p50, 2 * p50, 3 * p50, 4 * p50, 5 * p50) for p50 in (1.0, 2.0, 4.0)],
        "b": [timing.Percentiles(p50, p50, p50, p50, p50) for p50 in (3.0, 4.0, 20.0)],
    }
    comparison = timing.Comparison(rounds)
    assert comparison.median("a") == timing.Percentiles(2.0, 4.0, 6.0, 8.0, 20.0)
    assert comparison.ratio("b", "a") == timing.Ratio(3.0, 2.0, 5.0)
    assert comparison.ratio("a", "b", "p99_9_us") == timing.Ratio(4 / 3, 0.8, 2.0)
    assert str(comparison.ratio("b", "a")) == "3.00 (2.00..5.00)"


def test_percentiles_are_in_microseconds() -> None:
    assert timing.Percentiles.of([1000, 2000, 3000]).p50_us == 2.0


def test_a_stepper_cycles_through_the_pulses() -> None:
    calls = []
    stepper = timing.make_stepper(calls.append, [1, 2])
    for _ in range(3):
        stepper()
    assert calls == [1, 2, 1]
