"""The options that choose models of the bench."""

from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.models import PUBLISHED, Entry


def make_parser(module: str, description: str | None, rounds: int) -> ArgumentParser:
    """Return a parser with the models to measure, their folder and the rounds."""
    parser = ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("keys", nargs="*", help="models of the bench, such as tcn_1 gtcrn")
    parser.add_argument("--models", type=Path, default=PUBLISHED, help="folder of published models")
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def choose_entries(parser: ArgumentParser, keys: Sequence[str], entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries of these keys, all if there are none. Exits with an error if a key is unknown."""
    entry_of = {entry.key: entry for entry in entries}
    if unknown := [key for key in keys if key not in entry_of]:
        parser.error(f"no model is called {', '.join(unknown)}; choose from {', '.join(entry_of)}")
    return [entry_of[key] for key in keys or entry_of]
