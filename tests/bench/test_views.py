"""The bench of views compares forms of one model that give the same."""

from bench.views import NAMED, ON_NUMPY, PLAIN, REGISTERED, view_times


def test_each_form_has_a_row() -> None:
    rows = {row.title: row for row in view_times(rounds=1, steps=3)}
    assert list(rows) == [PLAIN, NAMED, REGISTERED, ON_NUMPY]
    assert all(row.compile_ms > 0 and row.step_us > 0 for row in rows.values())
    assert rows[PLAIN].compile_ratio == rows[PLAIN].step_ratio.median == 1
    assert rows[ON_NUMPY].step_ratio.median > 0
