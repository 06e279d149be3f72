"""A SavedModel block by block, here and by TensorFlow itself: ``python -m bench.tensorflow FOLDER``.

Both run alternately in one process, with one thread each. TensorFlow has to be installed.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import pulse
from bench.measurement.timing import alternate, make_stepper
from pulse.facts import Array

ROUNDS = 5
"""Rounds in which both alternate."""


def theirs(folder: Path, name: str) -> Any:
    """Return TensorFlow's call of the serving signature."""
    import tensorflow as tf  # pyright: ignore[reportMissingImports, reportMissingModuleSource]

    library: Any = tf
    library.config.threading.set_intra_op_parallelism_threads(1)
    library.config.threading.set_inter_op_parallelism_threads(1)
    function = library.saved_model.load(str(folder)).signatures["serving_default"]

    def call(block: Array) -> dict[str, Any]:
        return {key: tensor.numpy() for key, tensor in function(**{name: library.constant(block)}).items()}

    return call


def main() -> None:
    """Print the median of each, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a SavedModel with one input of constant shape")
    folder = parser.parse_args().folder
    model = pulse.load(folder).model
    states = [variable.input for variable in model.variables]
    name = next(name for name in model.inputs if name not in states)
    state = pulse.stream(folder).spawn()
    shape = [int(dim) for dim in model.analyse().inputs[name].shape]
    blocks = np.random.default_rng(0).standard_normal((125, *shape)).astype(np.float32) * 0.1
    steps = {"pulse": state.step, "TensorFlow": theirs(folder, name)}
    times = alternate(
        {name: make_stepper(step, list(blocks)) for name, step in steps.items()}, ROUNDS, len(blocks)
    )
    medians = ", ".join(f"{name} {times.median(name).p50_us:.1f} us" for name in steps)
    print(f"{medians} per block: {times.ratio('TensorFlow', 'pulse')} times as fast")


if __name__ == "__main__":
    main()
