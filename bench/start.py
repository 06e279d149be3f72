"""``python -m bench.start``: the time to the first result, in this project and in the other runtimes."""

import argparse
from pathlib import Path

from bench.models import PUBLISHED, catalogue
from bench.performance.start_times import ROUNDS, STARTED, starts
from bench.report.performance_page import START_TITLE, replace_section, start_section


def main() -> None:
    """Measure start times, and print the section of docs/performance.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.start", description=main.__doc__)
    parser.add_argument("keys", nargs="*", default=STARTED, help="models of the bench")
    parser.add_argument("--models", type=Path, default=PUBLISHED, help="folder of published models")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--cold", action="store_true", help="with an empty cache of kernels too")
    parser.add_argument("--docs", action="store_true", help="put the section into the page too")
    options = parser.parse_args()
    entries = {entry.key: entry for entry in catalogue(options.models)}
    if unknown := [key for key in options.keys if key not in entries]:
        parser.error(f"no model is called {', '.join(unknown)}; choose from {', '.join(entries)}")
    section = start_section(starts((entries[key] for key in options.keys), options.cold, options.rounds))
    print(section)
    if options.docs:
        replace_section(START_TITLE, section)


if __name__ == "__main__":
    main()
