"""``python -m bench.streams``: how many streams of each model one core runs in real time."""

from bench.measurement.roofline import measured_machine
from bench.models.choice import choose_entries, make_parser
from bench.performance.lanes import COUNTS, ROUNDS, lanes_entries, lanes_rows
from bench.report.performance_page import LANES_TITLE, lanes_section, replace_section


def main() -> None:
    """Measure streams on one core, and print the section of docs/performance.md."""
    parser = make_parser("bench.streams", main.__doc__, ROUNDS)
    parser.add_argument("--lanes", type=int, nargs="+", default=COUNTS, help="streams in one call")
    parser.add_argument("--docs", action="store_true", help="put the section into the page too")
    options = parser.parse_args()
    entries = choose_entries(parser, options.keys, lanes_entries(options.models))
    machine = measured_machine()
    rows = [row for entry in entries for row in lanes_rows(entry, machine, options.lanes, options.rounds)]
    section = lanes_section(rows)
    print(section)
    if options.docs:
        replace_section(LANES_TITLE, section)


if __name__ == "__main__":
    main()
