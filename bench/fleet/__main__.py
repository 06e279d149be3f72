"""``python -m bench.fleet``: what a fleet costs.

kills      workers of a fleet on this machine, with Ray, killed below streams in real time: how long streams are silent
simulate   10,000 and 1,000,000 streams on paper, from costs that are measured here first
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from bench.host import Host


def main() -> None:
    """One of both, as text and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("kills", "simulate"))
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=3, help="of Ray, on this machine")
    parser.add_argument("--streams", type=int, default=4, help="in real time below the kills")
    parser.add_argument(
        "--checkpoint", type=float, default=0.25, help="seconds of sound between two checkpoints"
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    host = Host.here()
    print(host)
    if given.what == "kills":
        from bench.fleet.kills import measure_kills

        found = measure_kills(given.kills, given.nodes, given.streams, given.checkpoint)
        print(found.text())
    else:
        from bench.fleet.simulation import simulate, text

        found = simulate()
        print(text(found))
    if given.json:
        given.json.write_text(json.dumps({"host": asdict(host), "found": asdict(found)}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
