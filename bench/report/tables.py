"""The results as a table in the terminal."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table

from bench.peers.contest import OURS
from bench.performance import start_times
from bench.performance.lanes import LanesRow
from bench.performance.results import Results
from bench.performance.steps import PEERS, StepRow


def show(results: Results, console: Console) -> None:
    """Print all tables of a run."""
    console.print(str(results.host), style="dim", highlight=False)
    if results.rows:
        console.print(steps_table(results))
        lines = (
            *results.summary(),
            *(f"target missed: {line}" for line in missed_targets(results)),
            *untimed_forms(results),
        )
        for line in lines:
            console.print(line, highlight=False)
    if results.lanes:
        console.print(lanes_table(results.lanes))
    if results.starts:
        console.print(starts_table(results))
    if results.growth:
        console.print(growth_table(results))


def steps_table(results: Results) -> Table:
    """Return one line for each model."""
    table = Table(title="microseconds per step: p50, p99.9, and how many times slower than this project")
    table.add_column("model, pulse")
    for name in (
        OURS,
        "p99.9",
        "onnxruntime",
        "p99.9",
        "times",
        "tract",
        "p99.9",
        "times",
        "roofline",
        "ours / roofline",
    ):
        table.add_column(name, justify="right")
    for row in results.rows:
        table.add_row(f"{row.title}, {row.pulse}", *_cells(row))
    return table


def _cells(row: StepRow) -> Iterator[str]:
    if row.error:
        yield row.error
        return
    yield f"{row.ours.us.p50_us:.1f}"
    yield f"{row.ours.us.p99_9_us:.1f}"
    for peer in PEERS:
        if (timed := row.runtimes.get(peer)) is None:
            yield from ("-", "-", "-")
            continue
        yield f"{timed.us.p50_us:.1f}"
        yield f"{timed.us.p99_9_us:.1f}"
        target = getattr(row.target, peer)
        style = "" if target is None else "[green]" if timed.times.median >= target else "[red]"
        yield f"{style}{timed.times}"
    assert row.roofline is not None
    yield f"{row.roofline.min_us:.1f} {row.roofline.bound[0]}"
    yield f"{row.over_roofline:.1f}"


def missed_targets(results: Results) -> Iterator[str]:
    for row in results.timed_rows:
        for rival, target, measured, reached in row.target_results():
            if not reached:
                yield f"{row.title}, {row.pulse} against {rival}: {measured:.2f} instead of {target:g}"
        for peer in PEERS:
            if peer in row.runtimes and (times := row.runtimes[peer].tail).median < 1:
                yield f"{row.title}, {row.pulse}: p99.9 of {peer} is {times} times ours"


def untimed_forms(results: Results) -> Iterator[str]:
    """Yield every form that was not timed, and why."""
    for row in results.rows:
        for form in row.forms:
            if form["status"] != "right":
                title = f"{row.title}, {row.pulse}: {form['runtime']}, {form['how']}"
                yield f"{title}: {form['status']}, {form['note']}"


LANES_COLUMNS = (
    "model",
    "lanes",
    "ms per pulse",
    "us per stream",
    "us, separate",
    "times",
    "roofline us",
    "streams",
    "streams, separate",
    "streams per watt",
)
"""The heads of the table of many streams."""
POWER_UNKNOWN = "The power of this machine is unknown."
"""The caption of a table without power."""


def lanes_lines(rows: Iterable[LanesRow]) -> Iterator[list[str]]:
    """Yield one line for each number of lanes."""
    for row in rows:
        lanes, us = (str(row.lanes), f"{row.pulse_ms:g}"), (f"{row.us_per_stream:.2f}", f"{row.alone_us:.2f}")
        streams = f"{row.streams_per_core:,.0f}", f"{row.alone_per_core:,.0f}"
        per_watt = "unknown" if row.streams_per_watt is None else f"{row.streams_per_watt:,.0f}"
        yield [row.title, *lanes, *us, str(row.times), f"{row.min_us:.2f}", *streams, per_watt]


def lanes_table(rows: Sequence[LanesRow]) -> Table:
    """Return the table of the streams that one core holds."""
    has_watts = any(row.watts for row in rows)
    table = Table(title="streams of one core at real time", caption=None if has_watts else POWER_UNKNOWN)
    for name in LANES_COLUMNS:
        table.add_column(name, justify="left" if name == "model" else "right")
    for line in lanes_lines(rows):
        table.add_row(*line)
    return table


def starts_table(results: Results) -> Table:
    """Return the table of the times from the first import to the first result."""
    table = Table(title="to the first result: import, load, make ready, one step; a whole command")
    for name in start_times.COLUMNS:
        table.add_column(name, justify="right" if name.startswith("ms") else "left")
    for line in start_times.lines(results.starts):
        table.add_row(*line)
    return table


GROWTH_COLUMNS = ("model", "by", "at", "us per call", "us per frame of a stream", "roofline us", "times")
"""The heads of the table of growth."""


def growth_lines(results: Results) -> Iterator[list[str]]:
    """Yield one line for each variant."""
    for row in results.growth:
        figures = (
            f"{row.us:.1f}",
            f"{row.share_us:.2f}",
            f"{row.min_us:.1f}",
            f"{row.us / row.min_us:.1f}",
        )
        yield [row.title, row.by, row.at, *figures]


def growth_table(results: Results) -> Table:
    """Return the step by pulse, lanes and weights."""
    table = Table(
        title="how a step grows with the frames of a pulse, with lanes, and with the type of weights"
    )
    for name in GROWTH_COLUMNS:
        table.add_column(name, justify="left" if name in GROWTH_COLUMNS[:2] else "right")
    for line in growth_lines(results):
        table.add_row(*line)
    return table
