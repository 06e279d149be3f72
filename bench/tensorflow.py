"""A SavedModel block by block, here and by TensorFlow itself: ``python -m bench.tensorflow FOLDER``.

Both run alternately in one process, with one thread each. TensorFlow has to be installed.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import pulse
from pulse.facts import Array

ROUNDS = 5
"""Rounds in which both alternate; the smallest median counts."""


def median_us(call: Any, blocks: Array) -> float:
    """Return the median of the times that the calls take, in microseconds."""
    times_s: list[float] = []
    for block in blocks:
        start = time.perf_counter()
        call(block)
        times_s.append(time.perf_counter() - start)
    return float(np.median(times_s)) * 1e6


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
    """Print the smallest median of each, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a SavedModel with one input of constant shape")
    folder = parser.parse_args().folder
    model = pulse.load(folder).model
    states = [variable.input for variable in model.variables]
    name = next(name for name in model.inputs if name not in states)
    state = pulse.stream(folder).spawn()
    shape = [int(dim) for dim in model.analyse().inputs[name].shape]
    blocks = np.random.default_rng(0).standard_normal((125, *shape)).astype(np.float32) * 0.1
    step_theirs = theirs(folder, name)
    pairs = [(median_us(state.step, blocks), median_us(step_theirs, blocks)) for _ in range(ROUNDS)]
    ours, tensorflow = (min(column) for column in zip(*pairs))
    print(
        f"pulse {ours:.1f} us, TensorFlow {tensorflow:.1f} us a block: {tensorflow / ours:.0f} times as fast"
    )


if __name__ == "__main__":
    main()
