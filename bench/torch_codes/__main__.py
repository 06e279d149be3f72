"""``python -m bench.torch_codes``: published PyTorch codes through ``pulse.from_torch``, and the table of them."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from bench.torch_codes import attention, codecs, enhancers, recognisers, transforms
from bench.torch_codes.code import CODES, Code
from bench.torch_codes.measurement import Outcome, measure
from bench.torch_codes.page import PAGE, page

GROUPS = (codecs, enhancers, recognisers, transforms, attention)
"""The modules that add the codes."""
LONGEST_S = 900


def main() -> None:
    """Export, stream and time each code in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m bench.torch_codes", description=main.__doc__)
    parser.add_argument("names", nargs="*", help="codes to run, such as 'EnCodec encoder'; all by default")
    parser.add_argument("--list", action="store_true", help="list the codes and their packages")
    parser.add_argument("--json", type=Path, help="add a line for each code to this file")
    parser.add_argument("--read", type=Path, help="run nothing: take what --json wrote")
    parser.add_argument("--docs", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(CODES[options.one]).json()))
        return
    console = Console(stderr=True)
    if unknown := [name for name in options.names if name not in CODES]:
        parser.error(f"no code is called {', '.join(unknown)}; --list lists them")
    if options.list:
        for code in CODES.values():
            console.print(f"{code.name}: {', '.join(code.packages)}", highlight=False)
        return
    outcomes = read(options.read) if options.read else []
    for name in [] if options.read else options.names or CODES:
        outcome = run(CODES[name])
        console.print(f"{name}: {outcome.stage} {outcome.reason.splitlines()[0] if outcome.reason else ''}")
        outcomes.append(outcome)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(outcome.json()) + "\n")
    if options.docs:
        PAGE.write_text(page(outcomes))


def run(code: Code) -> Outcome:
    """A code in a process of its own: what it takes or breaks ends with it."""
    command = [sys.executable, "-W", "ignore", "-m", "bench.torch_codes", "--one", code.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(code.name, dict.fromkeys(code.packages, ""), reason=f"not done after {LONGEST_S} s")
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Outcome(code.name, dict.fromkeys(code.packages, ""), reason=reason)
    return Outcome.read(json.loads(done.stdout.strip().splitlines()[-1]))


def read(path: Path) -> list[Outcome]:
    """The last line of each code, in the order of the codes."""
    found = {each.name: each for each in map(Outcome.read, map(json.loads, path.read_text().splitlines()))}
    return [found[name] for name in CODES if name in found]


if __name__ == "__main__":
    main()
