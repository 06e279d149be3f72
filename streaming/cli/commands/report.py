"""pulse report: the report of a file of statistics."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.options import ReportOptions, option, takes_groups
from streaming.terminal.progress import progress


@takes_groups
def report(
    source: Annotated[
        Path,
        typer.Argument(metavar="STATS", help="Statistics that pulse run --live --stats FILE wrote."),
    ],
    target: Path | None = option("Write a picture: .png, .svg or .pdf.", "--output", "-o", metavar="FILE"),
    *,
    report_options: ReportOptions,
) -> None:
    """Report on a live run: latency, late and lost audio with times, and the end-to-end delay.

    The report of a run that was killed, or is still running, lacks only its last interval.

    Examples:
      pulse report out.jsonl                  as text
      pulse report out.jsonl -o latency.png   also as a picture
    """
    from streaming.files.atomic import refuse_same
    from streaming.stats.reader import read_stats
    from streaming.stats.stats_report import StatsReport

    refuse_same([source], [target])
    with progress(f"reading {source.name}") as advance:
        stats = read_stats(source, advance)
    if target is not None:
        from streaming.stats.plot import draw

        draw(stats, target)
    report_options.print(StatsReport(stats))
