"""LiveView: the display of a live run; one line per interval if stderr is not a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streaming.cli.live.display import (
    ASCII,
    BLOCK_SIGNS,
    MAX_METERS,
    KeyCommand,
    clock_text,
    decibels_text,
    render,
)
from streaming.cli.live.display_state import DisplayState
from streaming.stats.live_statistics import LiveStatistics
from streaming.stats.problems import describe_counters
from streaming.stats.setup import Setup

if TYPE_CHECKING:
    from rich.console import Console


class LiveView:
    """Shows statistics on stderr; as a context manager, restores the terminal at the end.

    setup      the settings of the run
    controls   the keys
    quiet      show nothing
    """

    def __init__(
        self,
        setup: Setup,
        controls: Sequence[KeyCommand] = (),
        quiet: bool = False,
        console: "Console | None" = None,
    ) -> None:
        from rich.live import Live

        from streaming.terminal.output import terminal

        self.setup = setup
        self.controls = tuple(controls)
        self.state = DisplayState()
        self._console = console or terminal(stderr=True, soft_wrap=False)
        self._quiet = quiet
        is_shown = self._console.is_terminal and not quiet
        self._live = Live(console=self._console, auto_refresh=False, transient=True) if is_shown else None

    def __enter__(self) -> "LiveView":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, statistics: LiveStatistics, active: frozenset[str] = frozenset()) -> None:
        """Show statistics; ``active`` names the controls that are on."""
        marked = self.state.marked
        self.state = self.state.next_state(statistics)
        if self._live is not None:
            signs = ASCII if self._console.options.ascii_only else BLOCK_SIGNS
            self._live.update(render(self.setup, self.state, self.controls, active, signs), refresh=True)
        elif not self._quiet and self.state.marked is not marked:
            self._console.print(plain_line(self.state), soft_wrap=True)


def plain_line(state: DisplayState) -> str:
    """Return the last interval as one line."""
    statistics, previous = state.marked, state.previous
    assert statistics is not None
    total = statistics.total if previous is None else statistics.total.difference_from(previous.total)
    new = statistics.counters if previous is None else statistics.counters.difference_from(previous.counters)
    limit = f"{1e3 * statistics.deadline_s:.2f} ms"
    parts = [
        clock_text(statistics.elapsed_s),
        f"p99 {1e3 * total.percentile_s(99):.2f} of {limit}, max {1e3 * total.max_s:.2f}"
        if total.count
        else "no pulse",
        f"load {statistics.load:.0%}",
    ]
    for name, peaks in (("in", state.peaks_in), ("out", state.peaks_out)):
        if peaks:
            parts.append(
                f"{name} {' '.join(decibels_text(peak.held_db).strip() for peak in peaks[:MAX_METERS])} dBFS"
            )
    parts.append(describe_counters(new))
    shown_notes = () if previous is None else previous.notes
    parts += [note for note in statistics.notes if note not in shown_notes]
    return "  ".join(filter(None, parts))
