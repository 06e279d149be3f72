"""Broken GraphDefs and SavedModels, by number."""

from functools import cache
from pathlib import Path

import numpy as np

from pulse.tensorflow.messages import message_classes
from tests.invariants.mutations import Random, Source, change_messages, cut, flip_bits, move_bytes
from tests.pulse.tensorflow.loops import branches, doubling_loop, functional, lowered_loop
from tests.pulse.tensorflow.saved import stateful
from tests.pulse.tensorflow.variables import counter
from tests.pulse.tensorflow.windows import dilated_convolution

REWRITES = 5
"""Mutations that rewrite the message, for each three that change bytes."""


@cache
def seeds() -> tuple[Source, ...]:
    """Graphs with loops, branches, variables, functions and windows."""
    builders = {
        "functional": functional(),
        "lowered": lowered_loop(),
        "until": doubling_loop(5.0),
        "branched": branches(),
        "dilated": dilated_convolution(),
        "references": counter(False),
        "resources": counter(True),
    }
    return tuple((name, builder.data) for name, builder in builders.items())


@cache
def lists_for_maps() -> dict[str, object]:
    """The messages with lists of entries for maps, whose entries can be changed like others."""
    return message_classes(maps=False)


def mutate_message(data: bytes, rng: Random, message: str) -> tuple[str, bytes]:
    choice = int(rng.integers(3 + REWRITES))
    if choice >= 3 and message:
        return "rewritten", change_messages(data, rng, lists_for_maps()[message])
    mutate = (flip_bits, cut, move_bytes)[choice % 3]
    return mutate.__name__, mutate(data, rng)


def mutated_graph(number: int) -> Source:
    """The graph of a number, and how it came about."""
    rng = np.random.default_rng(number)
    name, data = seeds()[int(rng.integers(len(seeds())))]
    how, changed = mutate_message(data, rng, "GraphDef")
    return f"{number}: {name} {how}", changed


def write_folders(folder: Path, numbers: range) -> None:
    """A SavedModel for each number, one of its files changed."""
    for number in numbers:
        rng = np.random.default_rng(number)
        saved = stateful(folder / f"model{number}")
        path = sorted(path for path in saved.rglob("*") if path.is_file())[number % 3]
        message = "SavedModel" if path.name == "saved_model.pb" else ""
        path.write_bytes(mutate_message(path.read_bytes(), rng, message)[1])
