"""pulse report: what a live run has written about itself."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli import options
from streaming.cli.console import print_json, print_pairs
from streaming.progress import progress


def report(
    source: Annotated[
        Path,
        typer.Argument(metavar="STATS", help="What pulse run --live --stats FILE wrote.", show_default=False),
    ],
    target: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Draw it: .png, .svg or .pdf.", show_default=False),
    ] = None,
    json: options.AsJson = False,
) -> None:
    """Report how a live run went: latency, what was late or lost and when, and the end-to-end latency.

    Of a run that was killed, or still goes on, all but its last interval is there.

    [bold]Examples[/bold]

      [cyan]pulse report out.jsonl[/cyan]                    in words

      [cyan]pulse report out.jsonl -o latency.png[/cyan]     and as a picture
    """
    from pulse.wording import use_spelling
    from streaming.atomic_files import refuse_same
    from streaming.cli.live.summary import print_delay, print_times, print_worst, summary_pairs
    from streaming.cli.spelling import as_options
    from streaming.stats.reader import read_stats
    from streaming.stats.report import as_dict, worst

    refuse_same([source], [target])
    with progress(f"reading {source.name}") as advance:
        stats = read_stats(source, advance)
    if target is not None:
        from streaming.stats.plot import draw

        draw(stats, target)
    with use_spelling(as_options):
        if json:
            print_json(as_dict(stats))
            return
        print_pairs(
            [
                ("run", f"{stats.started:%Y-%m-%d %H:%M:%S}"),
                *summary_pairs(stats.header.setup, stats.statistics),
            ]
        )
        print_times(stats.statistics)
        print_delay(stats.statistics.delay)
        print_worst(worst(stats))
