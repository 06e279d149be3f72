"""``docs/performance.md``, written from the results."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

from bench.measurement.host import Host
from bench.peers.contest import OURS, SPECIALISED
from bench.performance import start_times
from bench.performance.lanes import LanesRow
from bench.performance.results import Results
from bench.performance.start_times import Start
from bench.performance.steps import PEERS, StepRow
from bench.report.tables import (
    GROWTH_COLUMNS,
    LANES_COLUMNS,
    growth_lines,
    lanes_lines,
    missed_targets,
    untimed_forms,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
"""The page."""
PICTURE = PAGE.with_name("growth.svg")
"""The picture on it."""

START_TITLE, LANES_TITLE = "## Start", "## Many streams"
"""The heads of sections that are measured by commands of their own."""

HEAD = """# Performance

`python -m bench --docs` writes this page; [performance_zen4.md](performance_zen4.md) has the same on a processor
that computes half as many multiply-adds per cycle, [performance_zen3.md](performance_zen3.md) on one with AVX2.
[bench/README.md](../bench/README.md) describes the method, and how the comparison is kept fair.

{host}

The figures are microseconds per step. Each percentile is the median over {rounds} rounds of {steps} steps;
*max* is the largest of all. *times* is the p50 of a runtime divided by the p50 of pulse in the same round:
median, lowest and highest. *roofline* is the longer of two times: to read the weights and
state of a step, at the speed measured for a working set of this size in the same rounds, and to compute its
multiply-adds at the measured peak. Its *times* is the p50 of pulse divided by it. *target* is the ratio to
reach; a missed target is set in bold. *pulse, specialised kernels* is the same program after
[`specialise`](specialised_kernels.md), with the processor time that this took, for the models that gain 2 % or more
(`min_gain=1.02`).
"""
"""The beginning of the page; with ``host``, ``rounds`` and ``steps``."""

COLUMNS = ("model, pulse", "runtime", "p50", "p90", "p99", "p99.9", "max", "times", "target")
"""The heads of the table of steps."""


def page(results: Results) -> str:
    """Return the whole page."""
    parts = [HEAD.format(host=results.host, rounds=results.rounds, steps=results.steps)]
    parts.append(table(COLUMNS, (line for row in results.rows for line in steps_lines(row)), left=2))
    parts.append("\n".join(f"- {line}" for line in results.summary()) + "\n")
    parts += section("Missed targets", missed_targets(results))
    parts += section("Not timed", untimed_forms(results), NOT_TIMED)
    if results.lanes:
        parts.append(lanes_section(results.lanes))
    if results.starts:
        parts.append(start_section(results.starts))
    if results.calls:
        lines = ([row.name, f"{row.us:.2f}", f"{row.over_us:.2f}"] for row in results.calls)
        parts += ["## Calls\n", CALLS, table(("call", "us", "us over the machine"), lines)]
    if results.growth:
        lines = growth_lines(results)
        parts += ["## Growth\n", GROWTH, table(GROWTH_COLUMNS, lines, left=2)]
    parts += ["## This machine\n", MACHINE, table(("working set", "GB/s"), machine_lines(results))]
    rate = results.machine.multiply_adds_per_s / 1e9
    parts.append(f"Multiply-adds in registers, f32: {rate:.0f} G/s.\n")
    return "\n".join(parts)


NOT_TIMED = "Forms of a model that another runtime does not load, or for which it returns wrong results.\n"
"""The beginning of the section on forms that were not timed."""

LANES = """`python -m bench.streams` measures these: streams of one model that step in one call
(`Program.spawn_many`), and the same number of separate states that step in turn, in alternating rounds. *streams* is
how many of them one core runs in real time, with a pulse every *ms per pulse*. *times* is the time of separate states
divided by that of lanes. *roofline us* is the roofline of the call, divided by the number of lanes: nothing that reads
these bytes and computes these multiply-adds is faster on this machine. *streams per watt* divides the streams of one
core by the power of the whole processor while the lanes step, as its energy counters show it; *unknown* where a
machine has none that this user may read.
"""
"""The beginning of the section on many streams."""

START = """`python -m bench.start` measures these: separate processes, which take turns; the median of each. *ms* is
the time from before the first import to the first result, import, load, make ready and one step; of `pulse run` it is
the whole command. *ms of CPU* has the start of the interpreter too, and depends less on what else the machine does.
All rows import numpy. *carried* kernels are the machine code of a wheel: nothing is compiled, the first time either.
"""
"""The beginning of the section on start."""


def start_section(starts: Sequence[Start]) -> str:
    """Return the section on start times; it names its machine, since it may come from another run."""
    lines = table(start_times.COLUMNS, start_times.lines(starts), left=2)
    return "\n".join([f"{START_TITLE}\n", START, f"{Host.here()}\n", lines])


def lanes_section(rows: Sequence[LanesRow]) -> str:
    """Return the section on lanes, with its machine."""
    return "\n".join([f"{LANES_TITLE}\n", LANES, f"{Host.here()}\n", table(LANES_COLUMNS, lanes_lines(rows))])


def replace_section(title: str, text: str) -> None:
    """Replace a section of the page."""
    head, _, tail = PAGE.read_text().partition(f"{title}\n")
    PAGE.write_text(f"{head}{text}\n{tail[tail.index('## ') :]}")


CALLS = """One call from Python of a model of one Relu, 16 frames, and what it takes more than the machine's own run
of the program in the same rounds (`python -m bench.calls`).
"""
"""The beginning of the section on calls."""

GROWTH = f"""A call of one model: with more frames in a pulse, with more streams in one call, with 16-bit and 8-bit
weights. *roofline* is the roofline of the call; weights count once for all lanes.

![times by pulse, lanes and weights]({PICTURE.name})
"""
"""The beginning of the section on growth."""

MACHINE = """The speed of reading with one thread, measured before the models.
"""
"""The beginning of the section on this machine."""


def table(columns: Sequence[str], lines: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table whose first columns are text and whose others are numbers."""
    rule = ["---"] * left + ["---:"] * (len(columns) - left)
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, rule, *lines)) + "\n"


def section(title: str, lines: Iterable[str], text: str = "") -> Iterator[str]:
    """Yield a list under a heading; nothing if it is empty."""
    section_lines = list(lines)
    if section_lines:
        yield f"## {title}\n"
        if text:
            yield text
        yield "\n".join(f"- {line}" for line in section_lines) + "\n"


def steps_lines(row: StepRow) -> Iterator[list[str]]:
    """Yield the rows of this project, of each peer and of the roofline."""
    name = f"{row.title}, {row.pulse}"
    if row.error:
        yield [name, OURS, *["-"] * 5, row.error, ""]
        return
    reached = {rival: (f"{target:g}", good) for rival, target, _, good in row.target_results()}
    for runtime in (OURS, SPECIALISED, *PEERS):
        timed = row.runtimes.get(runtime)
        if timed is None and runtime == SPECIALISED:
            continue
        if timed is None:
            yield ["", runtime, *["-"] * 5, "no correct result", ""]
            continue
        times = f"{astuple(timed.us)[0]:.1f}"
        target, good = reached.get(runtime, ("", True))
        figures = [times, *(f"{value:.1f}" for value in astuple(timed.us)[1:])]
        label = f"**{runtime}**" if runtime == OURS else f"{runtime}, {timed.how}"
        ratio = "" if runtime == OURS else bold(str(timed.times), good)
        yield [name if runtime == OURS else "", label, *figures, ratio, target]
    assert row.roofline is not None
    target, good = reached.get("roofline", ("", True))
    bounds, min_us = row.roofline, f"{row.roofline.min_us:.1f}"
    label = f"roofline: {bounds.bound}, {kilo(bounds.bytes)}B, {kilo(bounds.multiply_adds)} multiply-adds"
    yield ["", label, min_us, *["", "", "", ""], bold(f"{row.over_roofline:.1f}", good), target]


def bold(text: str, good: bool) -> str:
    """Return a figure, bold if it misses its target."""
    return text if good else f"**{text}**"


def kilo(count: float) -> str:
    """Return a count in thousands or millions."""
    return f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count / 1e3:.0f} k"


def machine_lines(results: Results) -> Iterator[list[str]]:
    """Yield the bandwidth by working set."""
    for size, rate in results.machine.bandwidth:
        yield [f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB", f"{rate / 1e9:.0f}"]
