"""``python -m bench.streams``: how many streams of each model one core runs in real time."""

import argparse
from pathlib import Path

from bench.measurement.roofline import measured_machine
from bench.models import PUBLISHED
from bench.performance.lanes import COUNTS, ROUNDS, lanes_entries, lanes_rows
from bench.report.performance_page import LANES_TITLE, lanes_section, replace_section


def main() -> None:
    """Measure streams on one core, and print the section of docs/performance.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.streams", description=main.__doc__)
    parser.add_argument("keys", nargs="*", help="models of the bench; all by default")
    parser.add_argument("--models", type=Path, default=PUBLISHED, help="folder of published models")
    parser.add_argument("--lanes", type=int, nargs="+", default=COUNTS, help="streams in one call")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--docs", action="store_true", help="put the section into the page too")
    options = parser.parse_args()
    entries = {entry.key: entry for entry in lanes_entries(options.models)}
    if unknown := [key for key in options.keys if key not in entries]:
        parser.error(f"no model is called {', '.join(unknown)}; choose from {', '.join(entries)}")
    machine = measured_machine()
    rows = [
        row
        for key in options.keys or entries
        for row in lanes_rows(entries[key], machine, options.lanes, options.rounds)
    ]
    section = lanes_section(rows)
    print(section)
    if options.docs:
        replace_section(LANES_TITLE, section)


if __name__ == "__main__":
    main()
