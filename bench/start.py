"""``python -m bench.start``: the time to the first result, in this project and in the other runtimes."""

from bench.models import catalogue
from bench.models.choice import choose_entries, make_parser
from bench.performance.start_times import ROUNDS, STARTED, starts
from bench.report.performance_page import START_TITLE, replace_section, start_section


def main() -> None:
    """Measure start times, and print the section of docs/performance.md."""
    parser = make_parser("bench.start", main.__doc__, ROUNDS)
    parser.add_argument("--cold", action="store_true", help="with an empty cache of kernels too")
    parser.add_argument("--docs", action="store_true", help="put the section into the page too")
    options = parser.parse_args()
    entries = choose_entries(parser, options.keys or STARTED, catalogue(options.models))
    section = start_section(starts(entries, options.cold, options.rounds))
    print(section)
    if options.docs:
        replace_section(START_TITLE, section)


if __name__ == "__main__":
    main()
