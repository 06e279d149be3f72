"""``python -m bench.torch_codes``: published PyTorch models through ``pulse.from_torch``, and the table of them."""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.torch_codes.outcome import ModelOutcome
from bench.torch_codes.page import PAGE, page
from bench.torch_codes.processes import run_all
from bench.torch_codes.published_model import PUBLISHED_MODELS

JOBS = 2
"""Models that run at once, by default."""


def main() -> None:
    """Export, stream and time each model in a separate process."""
    parser = argparse.ArgumentParser(prog="python -m bench.torch_codes", description=main.__doc__)
    parser.add_argument("names", nargs="*", help="models to run, such as 'EnCodec encoder'; all by default")
    parser.add_argument("--list", action="store_true", help="list the models and their packages")
    parser.add_argument("--json", type=Path, help="add a line for each model to this file")
    parser.add_argument("--read", type=Path, help="run nothing: take what --json wrote")
    parser.add_argument("--docs", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"models that run at once; {JOBS} by default")
    options = parser.parse_args()
    console = Console(stderr=True)
    if unknown := [name for name in options.names if name not in PUBLISHED_MODELS]:
        parser.error(f"no model is called {', '.join(unknown)}; --list lists them")
    if options.list:
        for model in PUBLISHED_MODELS.values():
            console.print(f"{model.name}: {', '.join(model.packages)}", highlight=False)
        return
    if options.jobs < 1:
        parser.error("--jobs is 1 or more")
    started_s = time.perf_counter()
    outcomes = read(options.read) if options.read else []
    names_to_run = [] if options.read else options.names or list(PUBLISHED_MODELS)
    for outcome in run_all(names_to_run, options.jobs):
        reason, *_ = outcome.reason.splitlines() or [""]
        console.print(f"{outcome.name}: {outcome.stage} {reason}", highlight=False)
        outcomes.append(outcome)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(outcome.json()) + "\n")
    console.print(f"{len(outcomes)} models in {time.perf_counter() - started_s:.0f} s", highlight=False)
    if options.docs:
        PAGE.write_text(page(in_order(outcomes)))


def read(path: Path) -> list[ModelOutcome]:
    """Return the outcomes in a file of ``--json``."""
    return list(map(ModelOutcome.read, map(json.loads, path.read_text().splitlines())))


def in_order(outcomes: Sequence[ModelOutcome]) -> list[ModelOutcome]:
    """Return the last outcome of each model, in the order of the models."""
    last = {outcome.name: outcome for outcome in outcomes}
    return [last[name] for name in PUBLISHED_MODELS if name in last]


if __name__ == "__main__":
    main()
