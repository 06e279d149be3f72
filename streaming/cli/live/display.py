"""The display of a live run in a terminal: meters, latencies, problems, the end-to-end delay, keys."""

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from pulse.support.record import record
from pulse.support.wording import count_of
from streaming.cli.live.display_state import DisplayState, Peak
from streaming.stats.live_statistics import Counters, LiveStatistics
from streaming.stats.problems import describe_counters
from streaming.stats.setup import Setup

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

MAX_METERS = 8
"""Maximum number of channels with a meter; the others are not shown."""
METER_FLOOR_DB = -60.0
"""The level at which a meter is empty."""
LOUD_DB, HOT_DB = -18.0, -3.0
"""Above these levels a meter is yellow, and red."""
LABEL_COLUMNS = 9
"""The columns before the values."""
MIN_COLUMNS = 60
"""In a narrower terminal the display is drawn for this many columns."""
MAX_NOTES = 3
"""Older notes are not shown; all are in the report."""


@record
class KeyCommand:
    """A command during the run: its key and its name."""

    key: str
    name: str


@record
class Signs:
    """The characters of the display: parts of a cell, the rest of a meter, a held peak, latencies, late, on."""

    parts: str
    rail: str
    held: str
    steps: str
    late: str
    on: str


BLOCK_SIGNS = Signs(" ▏▎▍▌▋▊▉█", "╌", "┃", "▁▂▃▄▅▆▇█", "!", "●")
ASCII = Signs(" #", "-", "|", "_.:-=+*#", "!", "(on)")


def render(
    setup: Setup,
    state: DisplayState,
    controls: Sequence[KeyCommand] = (),
    active: frozenset[str] = frozenset(),
    signs: Signs = BLOCK_SIGNS,
) -> "RenderableType":
    """Render the display of a state that has statistics, as wide as the console, best from 60 columns on."""
    return _Display(setup, state, tuple(controls), active, signs)


@record
class _Display:
    setup: Setup
    state: DisplayState
    controls: tuple[KeyCommand, ...]
    active: frozenset[str]
    signs: Signs

    def __rich_console__(self, console: "Console", options: Any) -> Any:
        from rich.table import Table

        statistics = self.state.statistics
        if statistics is None:
            return
        width = max(options.max_width, MIN_COLUMNS)
        yield self._title(statistics, width)
        yield from self._meters(width)
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=LABEL_COLUMNS - 1, style="dim", no_wrap=True)
        grid.add_column(width=width - LABEL_COLUMNS, overflow="fold")
        for name, value in self._rows(statistics, width - LABEL_COLUMNS):
            grid.add_row(name, value)
        yield grid

    def _title(self, statistics: LiveStatistics, width: int) -> "Text":
        from rich.text import Text

        setup = self.setup
        what = f"{setup.model}, {1e3 * setup.pulse_s:.3g} ms pulses, {setup.engine}, {setup.policy}"
        ago = clock_text(statistics.elapsed_s)
        title = Text(what, "bold", no_wrap=True, overflow="ellipsis")
        title.truncate(width - len(ago) - 2, overflow="ellipsis", pad=True)
        return title.append(f"  {ago}", "bold")

    def _meters(self, width: int) -> Any:
        """Draw the meters: two columns if there are both input and output, with a line of names above."""
        from rich.text import Text

        meters = (
            (f"in {self.setup.input}", self.state.peaks_in),
            (f"out {self.setup.output}", self.state.peaks_out),
        )
        sides = [(name, peaks) for name, peaks in meters if peaks]
        if not sides:
            return
        side_width = (width - 2 * (len(sides) - 1)) // len(sides)
        rows = [[Text(name, "dim") for name, _ in sides]]
        for index in range(min(MAX_METERS, max(len(peaks) for _, peaks in sides))):
            rows.append([self._draw_meter(peaks, index, side_width) for _, peaks in sides])
        if any(len(peaks) > MAX_METERS for _, peaks in sides):
            rows.append([_draw_others(peaks) for _, peaks in sides])
        for row in rows:
            line = Text(no_wrap=True)
            for index, cell in enumerate(row):
                cell.truncate(side_width, overflow="ellipsis", pad=True)
                line.append_text(cell).append("  " if index + 1 < len(row) else "")
            yield line

    def _draw_meter(self, peaks: tuple[Peak, ...], index: int, width: int) -> "Text":
        from rich.text import Text

        if index >= len(peaks):
            return Text("")
        peak = peaks[index]
        name, number = f"{index + 1:>2} ", f" {decibels_text(peak.held_db)}"
        cells = width - len(name) - len(number)
        parts = len(self.signs.parts) - 1
        level = round(_filled_fraction(peak.now_db) * cells * parts)
        peak_cell = (
            min(cells - 1, int(_filled_fraction(peak.held_db) * cells))
            if _filled_fraction(peak.held_db) > 0
            else -1
        )
        meter = Text(name, "dim")
        for cell in range(cells):
            part = min(max(level - cell * parts, 0), parts)
            colour = _colour(METER_FLOOR_DB * (1 - (cell + 0.5) / cells))
            if cell == peak_cell and part < parts:
                meter.append(self.signs.held, _colour(peak.held_db))
            elif part:
                meter.append(self.signs.parts[part], colour)
            else:
                meter.append(self.signs.rail, "dim")
        return meter.append(number, _colour(peak.held_db) if peak.held_db > HOT_DB else "")

    def _rows(self, statistics: LiveStatistics, width: int) -> "list[tuple[str, Text]]":
        from rich.text import Text

        summary = statistics.total.summary()
        limit = f"  {self.signs.steps[-1]}: {1e3 * statistics.deadline_s:.3g} ms"
        latencies = self._sparkline(statistics.deadline_s, width - len(limit)).append(limit, "dim")
        times = [f"{name} {us / 1e3:.2f} ms" for name, us in summary.percentiles().items() if name != "p90"]
        rows = [
            ("latency", latencies),
            ("", Text(",  ".join([*times, f"load {statistics.load:.0%}"]))),
            ("so far", _problem_text(statistics.counters)),
            ("delay", Text(str(statistics.delay))),
        ]
        if self.controls:
            keys = Text()
            for control in self.controls:
                keys.append(f"{control.key}", "bold").append(f" {control.name}")
                keys.append(f" {self.signs.on}" if control.name in self.active else "", "bold").append("   ")
            rows.append(("keys", keys))
        return rows + [("note", Text(note, "yellow")) for note in statistics.notes[-MAX_NOTES:]]

    def _sparkline(self, deadline_s: float, width: int) -> "Text":
        """Draw the p99 of each interval; the highest step is the deadline."""
        from rich.text import Text

        line = Text()
        recent = self.state.p99_us[-width:]
        steps = self.signs.steps
        for p99_us in recent:
            fraction = p99_us / (deadline_s * 1e6)
            if isnan(fraction):
                line.append(" ")
            elif fraction > 1:
                line.append(self.signs.late, "bold red")
            else:
                line.append(
                    steps[min(int(fraction * len(steps)), len(steps) - 1)],
                    "green" if fraction < 0.5 else "yellow",
                )
        return line.append(" " * (width - len(recent)))


def clock_text(seconds: float) -> str:
    minutes, remaining_s = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{remaining_s:02}"


def _problem_text(counters: Counters) -> "Text":
    from rich.text import Text

    texts = describe_counters(counters)
    pulses = f"{count_of(counters.pulses, 'pulse', form=',')}, "
    if texts:
        return Text(pulses).append(texts, "bold red")
    return Text(f"{pulses}none late, nothing lost or silent")


def _draw_others(peaks: tuple[Peak, ...]) -> "Text":
    from rich.text import Text

    others = peaks[MAX_METERS:]
    if not others:
        return Text("")
    loudest = max(peak.held_db for peak in others)
    return Text(f"   and {len(others)} more, the loudest {decibels_text(loudest).strip()}", "dim")


def _filled_fraction(db: float) -> float:
    """Return the fraction of a meter that a level fills."""
    return 0.0 if isnan(db) else min(max(1 - db / METER_FLOOR_DB, 0.0), 1.0)


def _colour(db: float) -> str:
    return "red" if not db <= HOT_DB else "yellow" if db > LOUD_DB else "green"


def decibels_text(db: float) -> str:
    return "  nan" if isnan(db) else " -inf" if db < -99.9 else f"{db:5.1f}"
