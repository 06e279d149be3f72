"""The steps and the start of a library of ``pulse build``, and the steps of the same program from Python."""

import ctypes
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.library.c_library import CLibrary, addresses
from bench.models import PUBLISHED
from bench.models.recipe_pages import lay_out_recipe
from pulse.program.native.native_state import NativeState
from streaming.builtin import model_path
from streaming.cli.model_opening import open_model
from streaming.cli.options import ModelOptions
from streaming.deploy.building import build_model, find_target

BUILTIN = "denoise"
"""The name of the built-in model."""
STREAMS, ROUNDS, STEPS, STARTS = 9, 11, 40, 9
"""Streams on each side, rounds of each, steps in a round, starts of the program.

The address of a stream's memory can change the time of its steps threefold, so there are several streams.
"""
TIMER = Path(__file__).with_name("timer.c")
"""The C source that measures steps and start."""
LEVEL_VARIABLE = "PULSE_LEVEL"
"""The environment variable with the level of the processor that is compiled for."""


def measure(name: str, folder: Path) -> None:
    """Build a library for the level of ``PULSE_LEVEL``, whose kernels Python uses too, and print its times and size."""
    opened = open_model(
        model_path() if name == BUILTIN else lay_out_recipe(f"{name}.toml", folder, PUBLISHED.parent),
        ModelOptions(),
    )
    program = opened.compile()
    build_model(opened, program, name, find_target(os.environ[LEVEL_VARIABLE]), folder / "built", checks=True)
    (input_port,), (output_port,) = program.inputs, program.outputs
    pulse = np.random.default_rng(0).standard_normal(input_port.shape).astype(np.float32)
    result = np.zeros(output_port.shape, np.float32)
    library, step_in_c = CLibrary(folder / "built", name), compile_timer(name, folder, pulse, result)
    python: list[float] = []
    c: list[float] = []
    pairs: list[Any] = []
    for _ in range(STREAMS):
        stream, state = library.stream(), program.spawn()
        assert isinstance(state, NativeState)
        pairs.append((stream, state))
        rounds = [(step_in_python(state, pulse, result), step_in_c(stream.address)) for _ in range(ROUNDS)]
        python.append(median(spent for spent, _ in rounds))
        c.append(median(spent for _, spent in rounds))
    path = folder / "built" / f"lib{name}.so"
    command = [folder / "start", path, name]
    starts = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(STARTS)]
    print(
        f"{name}: step {1e6 * median(c):.1f} us from C, {1e6 * median(python):.1f} us from Python "
        f"(minimum {1e6 * min(c):.1f} and {1e6 * min(python):.1f}), start {1e3 * median(starts):.2f} ms, "
        f"{path.stat().st_size:,} bytes"
    )


def compile_timer(
    name: str, folder: Path, pulse: NDArray[Any], result: NDArray[Any]
) -> Callable[[ctypes.c_void_p], float]:
    """Return a function that returns the seconds of a step of a stream, in a loop of C; and the program ``start``."""
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", TIMER, "-o", folder / "timer.so"], check=True)
    subprocess.run(["gcc", "-O2", TIMER, "-o", folder / "start", "-ldl"], check=True)
    timer = ctypes.CDLL(str(folder / "timer.so"))
    timer.timed_steps.restype = ctypes.c_double
    built = ctypes.CDLL(str(folder / "built" / f"lib{name}.so"))
    step = ctypes.cast(built[f"{name}_step"], ctypes.c_void_p)
    inputs, outputs = addresses([pulse]), addresses([result])
    return lambda stream: timer.timed_steps(step, stream, inputs, outputs, STEPS)


def step_in_python(state: NativeState, pulse: NDArray[Any], result: NDArray[Any]) -> float:
    """Return the seconds of a step from Python."""
    start_s = perf_counter()
    for _ in range(STEPS):
        state.step(pulse, result)
    return (perf_counter() - start_s) / STEPS
