"""``python -m bench``: this project compared with onnxruntime and tract on many models, in alternating rounds."""

import argparse
import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console

from bench.measurement.host import Host
from bench.measurement.roofline import measured_machine
from bench.models import Entry, catalogue
from bench.models.choice import choose_entries, make_parser
from bench.models.user_model import add_options, user_entry
from bench.performance.calls import call_times
from bench.performance.growth import Growth, growth, growth_entries
from bench.performance.lanes import LanesRow, lanes_entries, lanes_rows
from bench.performance.results import Results
from bench.performance.start_times import STARTED, Start, starts
from bench.performance.steps import step_row
from bench.report.performance_page import PAGE, PICTURE, page
from bench.report.tables import show
from pulse.errors import PulseError

note = Console(stderr=True).print


def main() -> None:
    """Time a step of every model in each runtime: one thread, the same input, alternating rounds."""
    options = parse_options()
    if options.plot or options.docs:
        import_module("bench.report.plot")  # it needs matplotlib: better now than after all that is measured
    console = Console(width=None if sys.stdout.isatty() else 200)
    results = Results.read(options.read) if options.read else measure(options)
    show(results, console)
    if options.json:
        results.write(options.json)
    if options.plot:
        from bench.report.plot import draw

        draw(results, options.plot)
    if options.docs:
        from bench.report.plot import draw_growth

        PAGE.write_text(page(results))
        if results.growth:
            draw_growth(results, PICTURE)


def parse_options() -> argparse.Namespace:
    """Return the command line."""
    parser = make_parser("bench", main.__doc__, rounds=10)
    parser.add_argument(
        "--model",
        type=Path,
        action="append",
        metavar="FILE",
        help="a model of yours, an ONNX file, in place of those of the bench; may be repeated",
    )
    parser.add_argument("--steps", type=int, default=1000, help="steps per runtime and round")
    parser.add_argument(
        "--specialise", action="store_true", help="also with specialised kernels, some seconds per model"
    )
    parser.add_argument("--lanes", action="store_true", help="many streams of one core too")
    parser.add_argument("--start", action="store_true", help="the time to the first result too")
    parser.add_argument("--growth", action="store_true", help="the step by pulse, lanes and weights too")
    parser.add_argument("--json", type=Path, help="write all figures")
    parser.add_argument("--plot", type=Path, help="draw the ratios; needs matplotlib")
    parser.add_argument(
        "--docs",
        action="store_true",
        help=f"write {PAGE.name} with all of them; needs matplotlib",
    )
    parser.add_argument("--read", type=Path, help="show what --json wrote, and measure nothing")
    add_options(parser)
    options = parser.parse_args()
    choose_entries(parser, options.keys, catalogue(options.models))
    return options


def measure(options: argparse.Namespace) -> Results:
    """Run everything that the options choose."""
    host, machine = Host.here(), measured_machine()
    selection = entries(options)
    rows, start_times = [], list[Start]()
    for count, entry in enumerate(selection, 1):
        note(f"{count}/{len(selection)} {entry.name}", style="dim", highlight=False)
        rows.append(
            step_row(entry, machine, options.rounds, options.steps, options.specialise or options.docs)
        )
    if options.start or options.docs:
        note("start", style="dim", highlight=False)
        start_times = starts(entry for entry in selection if options.model or entry.key in STARTED)
    lanes = list[LanesRow]()
    if options.lanes or options.docs:
        for entry in lanes_entries(options.models):
            if options.keys and entry.key not in options.keys:
                continue
            note(f"lanes of {entry.name}", style="dim", highlight=False)
            lanes += lanes_rows(entry, machine)
    steps = list[Growth]()
    if options.growth or options.docs:
        for entry in selection if options.model or options.keys else growth_entries(options.models):
            note(f"growth of {entry.name}", style="dim", highlight=False)
            steps += growth(entry, machine)
    calls = call_times() if options.docs else []
    return Results(
        host=host,
        machine=machine,
        rounds=options.rounds,
        steps=options.steps,
        rows=rows,
        lanes=lanes,
        starts=start_times,
        growth=steps,
        calls=calls,
    )


def entries(options: argparse.Namespace) -> list[Entry]:
    """Return the rows to run. Exits if a user's model cannot be opened."""
    if options.model:
        try:
            return [user_entry(path, options) for path in options.model]
        except (PulseError, OSError) as error:
            raise SystemExit(f"error: {error}") from None
    return [entry for entry in catalogue(options.models) if not options.keys or entry.key in options.keys]


if __name__ == "__main__":
    main()
