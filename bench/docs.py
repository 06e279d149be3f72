"""``docs/performance.md``, written from the results."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

from bench.contest import OURS
from bench.report import GROWTH_COLUMNS, LANES_COLUMNS, growth_lines, lanes_lines, left_out, missed
from bench.results import PEERS, Results, Row

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
PICTURE = PAGE.with_name("growth.svg")

HEAD = """# Performance

`python -m bench --docs` writes this page. [bench/README.md](../bench/README.md) has the method and says what is fair.

{host}

Microseconds per step: the median over {rounds} rounds of {steps} steps of each percentile, and the largest maximum.
*times* is the p50 of a runtime divided by this project's, round by round: median, lowest and highest. *least* is the
roofline: the bytes of weights and state that a step touches at the speed at which its working set was read in the
same rounds, or its multiply-adds at the measured peak, whichever takes longer; its *times* is the p50 of this project
as a multiple of it. A figure that is asked for and not reached is set in bold.
"""

COLUMNS = ("model, pulse", "runtime", "p50", "p90", "p99", "p99.9", "max", "times", "asked")


def page(results: Results) -> str:
    """The whole page."""
    parts = [HEAD.format(host=results.host, rounds=results.rounds, steps=results.steps)]
    parts.append(table(COLUMNS, (line for row in results.rows for line in steps_lines(row)), left=2))
    parts.append("\n".join(f"- {line}" for line in results.summary()) + "\n")
    parts += section("Not reached", missed(results))
    parts += section(
        "Not timed", left_out(results), "Forms that another runtime does not load, or runs wrong.\n"
    )
    if results.lanes:
        parts += ["## Many streams\n", LANES, table(LANES_COLUMNS, lanes_lines(results))]
    if results.starts:
        lines = ([row.title, row.runtime, f"{row.seconds:.2f}"] for row in results.starts)
        parts += ["## Start\n", START, table(("model, pulse", "runtime", "seconds"), lines, left=2)]
    if results.growth:
        lines = growth_lines(results)
        parts += ["## Growth\n", GROWTH, table(GROWTH_COLUMNS, lines, left=2)]
    parts += ["## This machine\n", MACHINE, table(("working set", "GB/s"), machine_lines(results))]
    rate = results.machine.multiply_adds_per_s / 1e9
    parts.append(f"Multiply-adds in registers, f32: {rate:.0f} G/s.\n")
    return "\n".join(parts)


LANES = """Streams of one model stepped in one call (`Program.spawn_many`), and the same number of separate states
stepped one after the other; how many of them one core runs at real time, at 100 frames a second for the recurrent
networks and 62.5 for GTCRN. *times* is separate over lanes.
"""

START = """From before the first import to the first result, each in a process of its own. *cold* begins with an
empty kernel cache and compiles every kernel that the model needs; *warm* is every other start; *carried* runs the
machine code that a wheel brings, which nothing has to compile.
"""

GROWTH = f"""A call of one model: with more frames in a pulse, with more streams in one call, with weights of 16 and 8
bits. *least* is the roofline of the call; weights count once for all lanes.

![times by pulse and lanes]({PICTURE.name})
"""

MACHINE = """One thread, measured by the command before the models.
"""


def table(columns: Sequence[str], lines: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table whose first columns are text and whose others are numbers."""
    rule = ["---"] * left + ["---:"] * (len(columns) - left)
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, rule, *lines)) + "\n"


def section(title: str, lines: Iterable[str], text: str = "") -> Iterator[str]:
    """A list under a heading; nothing where it is empty."""
    found = list(lines)
    if found:
        yield f"## {title}\n"
        if text:
            yield text
        yield "\n".join(f"- {line}" for line in found) + "\n"


def steps_lines(row: Row) -> Iterator[list[str]]:
    """This project, each peer and the roofline."""
    name = f"{row.title}, {row.pulse}"
    if row.error:
        yield [name, OURS, *["-"] * 5, row.error, ""]
        return
    reached = {what: (f"{asked:g}", good) for what, asked, _, good in row.reached()}
    for runtime in (OURS, *PEERS):
        timed = row.runtimes.get(runtime)
        if timed is None:
            yield ["", runtime, *["-"] * 5, "none that is right", ""]
            continue
        times = f"{astuple(timed.us)[0]:.1f}"
        asked, good = reached.get(runtime, ("", True))
        figures = [times, *(f"{value:.1f}" for value in astuple(timed.us)[1:])]
        told = f"**{runtime}**" if runtime == OURS else f"{runtime}, {timed.how}"
        ratio = "" if runtime == OURS else bold(str(timed.times), good)
        yield [name if runtime == OURS else "", told, *figures, ratio, asked]
    assert row.least is not None
    asked, good = reached.get("roofline", ("", True))
    least = f"{row.least.least_us:.1f}"
    told = (
        f"least: {row.least.bound}, {kilo(row.least.bytes)}B, {kilo(row.least.multiply_adds)} multiply-adds"
    )
    yield ["", told, least, *["", "", "", ""], bold(f"{row.over_least:.1f}", good), asked]


def bold(text: str, good: bool) -> str:
    """Bold where it is not reached."""
    return text if good else f"**{text}**"


def kilo(count: float) -> str:
    """A count in thousands or millions."""
    return f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count / 1e3:.0f} k"


def machine_lines(results: Results) -> Iterator[list[str]]:
    """Bandwidth by working set."""
    for size, rate in results.machine.bandwidth:
        yield [f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB", f"{rate / 1e9:.0f}"]
