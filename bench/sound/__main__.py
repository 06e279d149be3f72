"""``python -m bench.sound``: recipes from audio to audio, and the authors' loops around onnxruntime, as a table.

The recipes are from the documents. Before a chain is timed, its output for real speech has to equal the output of its
author's chain. A step is one hop, from numpy to numpy; the steps continue with the same speech.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.models import PUBLISHED
from bench.sound.contests import CONTESTS, ROUNDS, STEPS, measure


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.sound", description=__doc__)
    parser.add_argument("recipes", nargs="*", help="such as gtcrn.toml; all by default")
    parser.add_argument("--models", type=Path, default=PUBLISHED, help="folder of published models")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS, help="hops in each round")
    options = parser.parse_args(arguments)
    recipes = [contest.recipe for contest in CONTESTS]
    if unknown := [name for name in options.recipes if name not in recipes]:
        parser.error(f"no recipe is called {', '.join(unknown)}; choose from {', '.join(recipes)}")
    print("| recipe | us per hop | p50 | p90 | p99 | times as fast, p50 | times as fast, p99 |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for contest in CONTESTS:
        if options.recipes and contest.recipe not in options.recipes:
            continue
        try:
            results = measure(contest, options.models.parent, options.rounds, options.steps)
        except FileNotFoundError as error:
            raise SystemExit(
                f"error: {error}: not here; --models is the folder of published models"
            ) from error
        print("\n".join(results.lines()), flush=True)


if __name__ == "__main__":
    main()
