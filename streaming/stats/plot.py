# pyright: reportUnknownMemberType=false
"""A picture of a live run: its times and problems, the histogram, and the end-to-end delay."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pulse.errors import InputError
from pulse.support.wording import count_of
from streaming.files.atomic import complete_file, kind_of
from streaming.stats.columns import Columns
from streaming.stats.live_statistics import DelayBreakdown
from streaming.stats.problems import GROUPS
from streaming.stats.reader import RecordedRun
from streaming.stats.setup import Setup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
INK, QUIET, GRID = "#222222", "#777777", "#dddddd"
P50, P99, MAX, LIMIT = "#0077bb", "#ee7733", "#999999", "#cc3311"
STAGES = ("#77aadd", "#99ddff", "#44bb99", "#eedd88", "#ee8866", "#ffaabb")
EVENTS = {
    "late": "#cc3311",
    "silent": "#222222",
    "lost": "#aa3377",
    "xrun": "#ee7733",
    "device": "#0077bb",
    "model": "#009988",
}
WIDTH_INCHES = 11
TITLE_SIZE, TITLE_MARGIN = 11, 0.01
LABEL_SIZE, LABEL_GAP = 8, 0.015
MIN_AXES_FRACTION = 0.8
"""The minimum fraction of the picture's width for the axes."""
MAX_BARS = 60
"""Maximum number of bars of a histogram; beyond it, neighbours are merged."""
MIN_BAR_WIDTH = 0.05
"""The minimum width of a bar, as a logarithm. It spans several buckets of the histogram, so no bar is always empty."""
DPI = 150


def draw(stats: RecordedRun, path: Path) -> None:
    """Draw a run to a file, which appears only when it is complete.

    path    .png, .svg or .pdf
    Raises  InputError: an unknown suffix, matplotlib is missing, or the file cannot be written
    """
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a picture is written as {', '.join(FORMATS)}, not {kind_of(path)}")
    figure = picture(stats)
    from streaming.stats.titles import ignore_missing_glyphs

    with complete_file(path) as part, ignore_missing_glyphs():
        figure.savefig(part, dpi=DPI, format=path.suffix[1:].lower())


def picture(stats: RecordedRun) -> "Figure":
    """Draw a run as a matplotlib figure. Raises InputError: matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(
            "drawing needs matplotlib; pip install 'pulse-stream[report]', or leave the picture out"
        ) from error
    figure = Figure(figsize=(WIDTH_INCHES, 8.2), facecolor="white", layout="constrained")
    setup, statistics = stats.header.setup, stats.statistics
    rows = figure.add_gridspec(4, 1, height_ratios=(10, 3.2, 7, 2.6), hspace=0.06)
    times = figure.add_subplot(rows[0])
    events = figure.add_subplot(rows[1], sharex=times)
    histogram = figure.add_subplot(rows[2])
    budget = figure.add_subplot(rows[3])
    columns = Columns.of(stats)
    unit, seconds = columns.unit
    _draw_times(times, columns, seconds, setup.deadline_s)
    _draw_events(events, columns, seconds)
    events.set_xlabel(f"time since {stats.start_time:%Y-%m-%d %H:%M:%S}, {unit}", color=INK)
    _draw_histogram(histogram, stats)
    _draw_delay(budget, statistics.delay)
    _draw_title(figure, setup)
    return figure


def _draw_title(figure: "Figure", setup: Setup) -> None:
    """Draw the title: the model, how it ran, and the devices, in as many lines as needed."""
    from streaming.stats.titles import fit_title

    parts = [
        f"{setup.model}: pulses of {1e3 * setup.pulse_s:.3g} ms, engine {setup.engine}, policy {setup.policy};",
        f"{setup.input or 'no input'} -> {setup.output or 'no output'}",
    ]
    text = fit_title(parts, (1 - 2 * TITLE_MARGIN) * 72 * WIDTH_INCHES, TITLE_SIZE, "bold")
    figure.suptitle(
        text, x=TITLE_MARGIN, ha="left", fontsize=TITLE_SIZE, fontweight="bold", color=INK, parse_math=False
    )


def _style_axes(axes: "Axes", title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(QUIET)
    axes.tick_params(colors=QUIET, labelcolor=INK, labelsize=9)


def _draw_times(axes: "Axes", columns: Columns, unit_s: float, deadline_s: float) -> None:
    """Draw p50, p99 and the longest time of each interval, with the deadline."""
    what = "each interval" if columns.merged == 1 else f"{columns.merged} intervals: median p50, worst p99"
    _style_axes(axes, f"From the arrival of a pulse until its output is ready: p50, p99 and max of {what}")
    edges = columns.edges_s / unit_s
    axes.stairs(columns.max_us / 1e3, edges, baseline=None, color=MAX, linewidth=1.0, label="max")
    axes.stairs(columns.p99_us / 1e3, edges, baseline=None, color=P99, linewidth=1.3, label="p99")
    axes.stairs(columns.p50_us / 1e3, edges, baseline=None, color=P50, linewidth=1.6, label="p50")
    axes.axhline(deadline_s * 1e3, color=LIMIT, linewidth=1.2, linestyle=(0, (5, 3)), label="deadline")
    axes.set_yscale("log")
    _set_decade_ticks(axes.yaxis)
    axes.set_ylabel("ms", color=INK)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlim(edges[0], edges[-1])
    axes.tick_params(labelbottom=False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False, fontsize=9, labelcolor=INK)


def _draw_events(axes: "Axes", columns: Columns, unit_s: float) -> None:
    """Draw a row for each group of problems, with a mark for each problem and the extent at the right."""
    _style_axes(axes, "What went wrong")
    axes.set_yticks(range(len(GROUPS)), GROUPS)
    axes.set_ylim(len(GROUPS) - 0.4, -0.6)
    starts, spans = columns.edges_s[:-1] / unit_s, np.diff(columns.edges_s) / unit_s
    visible = (columns.edges_s[-1] - columns.edges_s[0]) / unit_s / 300
    for row, name in enumerate(GROUPS):
        axes.axhline(row, color=GRID, linewidth=0.6, zorder=0)
        columns_with_problems = np.flatnonzero(columns.problems[name])
        bars = list(zip(starts[columns_with_problems], np.maximum(spans[columns_with_problems], visible)))
        axes.broken_barh(bars, (row - 0.36, 0.72), color=EVENTS[name], linewidth=0)
        axes.annotate(
            columns.extents[name] or "none",
            (1.0, row),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=INK if columns.extents[name] else QUIET,
            annotation_clip=False,
        )
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _draw_histogram(axes: "Axes", stats: RecordedRun) -> None:
    """Draw a histogram of the durations of pulses, with logarithmic scales."""
    from matplotlib.ticker import NullLocator

    latency, deadline_ms = stats.times["total"], stats.header.setup.deadline_s * 1e3
    _style_axes(axes, f"All {count_of(latency.count, 'pulse', form=',')}")
    if not latency.count:
        axes.text(0.5, 0.5, "no pulse was computed", transform=axes.transAxes, ha="center", color=QUIET)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    [all_bars] = latency.histogram(1)
    bins = latency.histogram(
        max(1, min(MAX_BARS, int(np.log(all_bars.to_s / all_bars.from_s) / MIN_BAR_WIDTH)))
    )
    edges = np.array([bins[0].from_s, *(bar.to_s for bar in bins)]) * 1e3
    counts = np.array([bar.count for bar in bins], float)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.stairs(counts, edges, baseline=0.5, fill=True, color=P50, alpha=0.85)
    axes.set_ylim(0.5, counts.max() * 30)
    axes.axvline(deadline_ms, color=LIMIT, linewidth=1.2, linestyle=(0, (5, 3)))
    marks = [("deadline", deadline_ms, LIMIT)]
    marks += [(f"p{percent:g}", latency.percentile_s(percent) * 1e3, INK) for percent in (50, 99, 99.9)]
    marks.append(("max", latency.max_s * 1e3, INK))
    _draw_marks(axes, sorted(marks, key=lambda mark: mark[1]), edges)
    _set_decade_ticks(axes.xaxis)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("ms", color=INK)
    axes.set_ylabel("pulses", color=INK)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_marks(axes: "Axes", marks: Sequence[tuple[str, float, str]], edges: NDArray[np.float64]) -> None:
    """Draw names and values of times above a histogram, each high enough not to overlap earlier ones."""
    low, high = min(edges[0], marks[0][1]) / 1.1, max(edges[-1], marks[-1][1]) * 1.1
    axes.set_xlim(low, high)
    ends: list[float] = []
    for name, ms, colour in marks:
        start = float(np.log(ms / low) / np.log(high / low)) if ms > 0 else 0.0
        text = f"{name} {ms:.3g}"
        level = next((level for level, end in enumerate(ends) if end < start), len(ends))
        ends[level : level + 1] = [start + _label_width(text) + LABEL_GAP]
        height = 0.9 - 0.1 * level
        axes.annotate(
            text,
            (ms, height),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            fontsize=LABEL_SIZE,
            color=colour,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
        )
        axes.axvline(ms, ymin=0, ymax=height + 0.06, color=colour, linewidth=0.7, alpha=0.6)


def _label_width(text: str) -> float:
    """Estimate the width of a label as a fraction of the axes' width, before the layout, rather too large."""
    from streaming.stats.titles import text_width_points

    return text_width_points(text, LABEL_SIZE) / (72 * WIDTH_INCHES * MIN_AXES_FRACTION)


def _draw_delay(axes: "Axes", delay: DelayBreakdown) -> None:
    """Draw the stages of the end-to-end delay, one after another."""
    _style_axes(axes, f"End-to-end latency: {1e3 * delay.total_s:.1f} ms")
    left_ms = 0.0
    for (name, seconds), colour in zip(delay.stages, STAGES):
        if not seconds:
            continue
        ms = 1e3 * seconds
        axes.barh(0, ms, left=left_ms, color=colour, edgecolor="white", linewidth=1, label=f"{name} {ms:.1f}")
        left_ms += ms
    axes.set_yticks([])
    axes.set_xlim(0, left_ms or 1)
    axes.set_xlabel("ms", color=INK)
    axes.spines["left"].set_visible(False)
    if left_ms:
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.75),
            ncols=6,
            frameon=False,
            fontsize=9,
            labelcolor=INK,
        )


def _set_decade_ticks(axis: "Axis") -> None:
    """Put ticks at 1, 2, 5, 10, 20 ... on a logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
