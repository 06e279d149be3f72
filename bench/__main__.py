"""``python -m bench``: this project beside onnxruntime and tract on one network, in alternating rounds."""

import argparse
import json

from bench.peers import tcn_peers, tcn_pulses
from bench.timing import alternate, fed


def main() -> None:
    """Time a step of the 24-layer dilated network in each runtime: one thread, the same input, in turns."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=main.__doc__)
    parser.add_argument("--pulse", type=int, nargs="+", default=[1, 8], help="frames per step")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1000, help="steps per runtime and round")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments = parser.parse_args()
    found = {}
    for pulse in arguments.pulse:
        pulses = tcn_pulses(pulse)
        steppers = {peer.name: fed(peer.step, pulses) for peer in tcn_peers(pulse)}
        comparison = alternate(steppers, arguments.rounds, arguments.steps)
        found[f"pulse {pulse}"] = comparison.as_dict()
        if not arguments.json:
            print(f"pulse {pulse}\n{comparison}")
            for other in ("onnxruntime", "tract"):
                print(f"pulse is {comparison.ratio(other, 'pulse')} times as fast as {other}")
    if arguments.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
