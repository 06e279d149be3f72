"""``python -m bench.fleet``: the costs of a fleet.

kills      workers on this machine, with Ray, killed while they serve streams in real time: how long streams are silent
simulate   10,000 and 1,000,000 streams, calculated from costs that are measured first
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from bench.measurement.host import Host

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fleet.md"
"""The page that this command writes a section of."""


def with_section(page: str, name: str, words: str) -> str:
    """Return a page with the text between its marks replaced."""
    mark, end = f"<!-- {name}: python -m bench.fleet {name} --docs -->", f"<!-- end of {name} -->"
    head, _, rest = page.partition(mark)
    _, _, tail = rest.partition(end)
    return f"{head}{mark}\n\n{words}\n\n{end}{tail}"


def main() -> None:
    """Run the simulation or the kills, and print the result as text and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("kills", "simulate"))
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=3, help="of Ray, on this machine")
    parser.add_argument("--streams", type=int, default=4, help="in real time during the kills")
    parser.add_argument(
        "--checkpoint", type=float, default=0.25, help="seconds of sound between two checkpoints"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--docs", action="store_true", help="write the result into docs/fleet.md")
    options = parser.parse_args()
    host = Host.here()
    print(host)
    if options.what == "kills":
        from bench.fleet.kills import measure_kills

        results = measure_kills(options.kills, options.nodes, options.streams, options.checkpoint)
        words = results.text()
    else:
        from bench.fleet.simulation import simulate, text

        results = simulate()
        words = text(results)
    print(words)
    if options.docs:
        PAGE.write_text(with_section(PAGE.read_text("utf-8"), options.what, f"{host}:\n\n{words}"), "utf-8")
    if options.json:
        options.json.write_text(json.dumps({"host": asdict(host), "results": asdict(results)}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
