"""``python -m bench.tflite FILE …``: a call of .tflite files, in pulse and in LiteRT alternately, one thread.

Medians over the rounds of p50 and p99, and of their ratios. The last line of a file is its limit: how long one thread
takes only to read the weights and state of a step, as fast as it reads a working set of this size in the same rounds.

Both are called from Python with numpy arrays in and out; LiteRT is given every input in each call, states too. A file
without state and open time is called with all of its input.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter  # pyright: ignore[reportMissingImports]

import pulse
from bench.measurement.roofline import BandwidthProbe, roofline, working_set
from bench.measurement.timing import alternate
from pulse.facts import Array, DType
from pulse.program.native.native_program import NativeProgram

ROUNDS, STEPS, READING = 15, 1000, "reading"
"""Rounds in which the contestants alternate, calls in each, and the name of reading the working set."""


def open_stream(path: Path) -> NativeProgram:
    """Return the file as a stream; a window of constant size as a chunk of its own."""
    loaded = pulse.load(path)
    model = loaded.model
    symbols = any(
        not dim.is_const for fact in model.inputs.values() for dim in fact.shape or () if dim is not None
    )
    if not symbols and not model.variables and len(model.inputs) == 1:
        loaded = pulse.load(path, chunking=pulse.Chunking(axes={next(iter(model.inputs)): 1}))
    program = pulse.stream(loaded)
    assert isinstance(program, NativeProgram), "the bench runs the numba backend"
    return program


def ours(program: NativeProgram) -> Callable[[], object]:
    """Return a function that runs a step on noise."""
    state, port = program.spawn(), next(port for port in program.inputs if port.streams)
    x = noise(port.shape, port.dtype)
    return lambda: state.step(x)


def theirs(path: Path) -> Callable[[], object]:
    """Return a function that runs LiteRT once: inputs set, outputs taken."""
    interpreter: Any = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    ports = interpreter.get_input_details()
    x = [(port["index"], noise(port["shape"], port["dtype"])) for port in ports]
    outputs = [port["index"] for port in interpreter.get_output_details()]

    def call() -> object:
        for index, value in x:
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in outputs]

    return call


def noise(shape: Sequence[int], dtype: DType) -> Array:
    """Return an input that is the same in every run."""
    rng = np.random.default_rng(0)
    if np.issubdtype(dtype, np.integer):
        return np.asarray(rng.integers(-100, 100, shape), np.dtype(dtype))
    return np.asarray(rng.standard_normal(shape), np.dtype(dtype))


def main() -> None:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    for path in parser.parse_args().files:
        program = open_stream(path)
        reading = BandwidthProbe(working_set(program))
        steppers = {"pulse": ours(program), "LiteRT": theirs(path), READING: reading}
        times = alternate(steppers, rounds=ROUNDS, steps=STEPS)
        for percentile in ("p50", "p99"):
            field = f"{percentile}_us"
            ours_us, theirs_us = (getattr(times.median(name), field) for name in ("pulse", "LiteRT"))
            print(
                f"{path.stem:16} {percentile} pulse {ours_us:7.2f} us, LiteRT {theirs_us:7.2f} us, "
                f"{times.ratio('LiteRT', 'pulse', field)} times as fast"
            )
        bytes_per_s = reading.bytes / times.median(READING).p50_us * 1e6
        bounds = roofline(program, bytes_per_s, math.inf)
        print(
            f"{path.stem:16} {bounds.bytes / 1e6:.2f} MB of weights and state, read at {bytes_per_s / 1e9:.0f} GB/s: "
            f"{bounds.min_us:.2f} us; nothing that reads them is more than "
            f"{times.median('LiteRT').p50_us / bounds.min_us:.2f} times as fast as LiteRT"
        )


if __name__ == "__main__":
    main()
