"""Faults in a live run, such as an index outside of its table: counted and reported, and the run continues."""

import numpy as np
import pytest

from pulse.errors import FaultError
from pulse.facts import Array
from pulse.models import TypedModel
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.gather import Gather
from streaming import Session
from streaming.stats.problems import describe_counters, find_problems
from tests.streaming.live.runs import BLOCK, runs, stereo
from tests.streaming.models import TypedBuilder, both_backends, cached_program

ROWS = 8


def table_lookup_model() -> TypedModel:
    """A model of x [1, T] with the output y [1, T]: row 100*x of a table."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,f32")
    hundred = builder.wire("hundred", Elementwise("mul"), x, builder.constant("scale", [[100.0]]))
    row = builder.wire("row", Cast(np.dtype(np.int64)), hundred)
    return builder.finish(
        y=builder.wire("the", Gather(0), builder.constant("rows", np.arange(ROWS) / ROWS), row)
    )


def rows_of_table(wrong: int) -> Array:
    """Rows of the table; ``wrong`` of them, from frame ``BLOCK`` on, do not exist."""
    x = (np.arange(10 * BLOCK) % ROWS).astype(np.float32) / 100 + np.float32(0.001)
    x[BLOCK : BLOCK + wrong] = 1.0
    return x[:, None]


@both_backends
@pytest.mark.parametrize("wrong", [0, 3, 2 * BLOCK])
def test_faults_are_counted_and_named_live(backend: str, wrong: int) -> None:
    """The sound after them is exact."""
    with runs(cached_program(table_lookup_model, 160, backend)) as (host, live):
        host.run(rows_of_table(wrong))
        statistics = live.statistics()
        assert statistics.counters.faults == wrong
        notes = [note for note in statistics.notes if "outside -8 … 7" in note]
        assert [note.partition(" values")[0] for note in notes] == (
            [f"the (Gather): {wrong}"] if wrong else []
        )
        problems = [
            problem for problem in find_problems(live.setup, statistics.summary()) if problem.name == "model"
        ]
        assert len(problems) == (wrong > 0)
        if wrong:
            assert f"{wrong} model faults" in str(problems[0])
            assert f"{wrong} model faults" in describe_counters(statistics.counters)
        valid_rows = rows_of_table(0)
        played = host.run(valid_rows)
        np.testing.assert_array_equal(
            np.unique(played[3 * BLOCK :]), np.arange(ROWS, dtype=np.float32) / ROWS
        )
        assert live.statistics().counters.faults == wrong


@both_backends
def test_the_faults_of_each_stream_are_counted_separately(backend: str) -> None:
    x = np.concatenate([rows_of_table(0), rows_of_table(5)], axis=1)
    with runs(cached_program(table_lookup_model, 160, backend), device=stereo(), channels="each") as (
        host,
        live,
    ):
        host.run(x)
        statistics = live.statistics()
        assert statistics.counters.faults == 5
        assert [note[:24] for note in statistics.notes if "outside" in note] == ["stream 1: the (Gather): "]


def test_a_state_restored_from_a_live_snapshot_has_no_faults() -> None:
    """Faults that were counted live do not stop a session that continues from there."""
    compiled = cached_program(table_lookup_model, 160)
    with runs(compiled) as (host, live):
        host.run(rows_of_table(4))
        host.advance(0.001)
        (snapshot,) = live.control.snapshot()
    state = compiled.spawn()
    state.restore(snapshot)
    assert not state.has_faulted
    state.step(np.zeros((1, 160), np.float32))


def test_a_swapped_model_continues_the_count() -> None:
    """While the new program runs alongside the old one, its faults do not count."""
    with runs(cached_program(table_lookup_model, 160)) as (host, live):
        host.run(rows_of_table(4))
        live.control.swap(cached_program(table_lookup_model, 160))
        host.run(rows_of_table(7))
        assert live.statistics().counters.faults == 11


@both_backends
def test_a_session_stops_at_a_fault(backend: str) -> None:
    session = Session(cached_program(table_lookup_model, 160, backend))
    with pytest.raises(FaultError, match=r"the \(Gather\): 3 values .* in pulse 1"):
        session.push(rows_of_table(3).reshape(1, -1))
    with pytest.raises(FaultError, match="cannot continue"):
        session.push(rows_of_table(0).reshape(1, -1))
    session.reset()
    session.push(rows_of_table(0).reshape(1, -1))
    assert session.flush()["y"].shape == (1, 0)
