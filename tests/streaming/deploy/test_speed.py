"""Size, start and speed of libraries: of the built-in denoiser, and of GTCRN with its spectra."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from statistics import median
from time import perf_counter

import numpy as np
import pytest

from bench.page import laid_out
from streaming.builtin import model_path
from streaming.cli.model import open_model
from streaming.cli.options import ModelOptions
from streaming.deploy.building import build_model, find_target
from tests.shared import ROOT, shared
from tests.streaming.deploy.building import HERE
from tests.streaming.deploy.c_library import CLibrary, addresses

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(HERE is None, reason="no level for this system"),
    pytest.mark.skipif(which("gcc") is None, reason="gcc is not installed"),
]
MODELS = {"denoise": 1_200_000, "gtcrn": 600_000}
"""Name -> the most bytes of its library."""
STREAMS, ROUNDS, STEPS = 9, 11, 40
"""Streams on each side, since the place of a stream's memory can change the time of its steps by three."""
SLOWER, START_S = 1.03, 0.005
"""How much longer a step may take than from Python, and how long a start."""


def model(name: str, folder: Path) -> Path:
    """The file of a model; skips where it is missing."""
    if name == "denoise":
        return model_path()
    shared("models")
    return laid_out(f"{name}.toml", folder, ROOT)


@pytest.mark.parametrize("name", MODELS)
def test_a_library_is_small_and_fast(name: str, tmp_path: Path) -> None:
    source = Path(__file__).with_name("timed.c")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", source, "-o", tmp_path / "timed.so"], check=True)
    subprocess.run(["gcc", "-O2", source, "-o", tmp_path / "start", "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.streaming.deploy.test_speed", name, str(tmp_path)],
        env={**os.environ, "PULSE_LEVEL": str(HERE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    bytes_, ratio = (float(word) for word in done.stdout.splitlines()[-1].split())
    assert bytes_ < MODELS[name]
    assert ratio < SLOWER
    library = tmp_path / "built" / f"lib{name}.so"
    starts = [
        float(subprocess.run([tmp_path / "start", library, name], capture_output=True, check=True).stdout)
        for _ in range(9)
    ]
    print(f"start {1000 * median(starts):.2f} ms")
    assert median(starts) < START_S


def measure(name: str, folder: Path) -> None:
    """Steps from Python and from C in turns, with the kernels of PULSE_LEVEL; prints bytes and the ratio."""
    opened = open_model(model(name, folder), ModelOptions())
    program = opened.compile(None, "numba", None)
    build_model(opened, program, name, find_target(os.environ["PULSE_LEVEL"]), folder / "built", True)
    library = CLibrary(folder / "built", name)
    timed = ctypes.CDLL(str(folder / "timed.so"))
    timed.timed_steps.restype = ctypes.c_double
    (port,), (sent,) = program.inputs, program.outputs
    pulse = np.random.default_rng(0).standard_normal(port.shape).astype(np.float32)
    result = np.zeros(sent.shape, np.float32)
    code = ctypes.CDLL(str(folder / "built" / f"lib{name}.so"))
    step = ctypes.cast(code[f"{name}_step"], ctypes.c_void_p)
    inputs, outputs = addresses([pulse]), addresses([result])
    python: list[float] = []
    c: list[float] = []
    kept = []
    for _ in range(STREAMS):
        stream, state = library.stream(), program.spawn()
        kept.append((stream, state))
        turns: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            before = perf_counter()
            for _ in range(STEPS):
                state.step_into(pulse, result)
            spent = (perf_counter() - before) / STEPS
            turns.append((spent, timed.timed_steps(step, stream.address, inputs, outputs, STEPS)))
        python.append(median(spent for spent, _ in turns))
        c.append(median(spent for _, spent in turns))
    ratio = min(c) / min(python)
    size = (folder / "built" / f"lib{name}.so").stat().st_size
    print(
        f"{name}: step {1e6 * median(c):.1f} us from C, {1e6 * median(python):.1f} us from Python, {size:,} bytes"
    )
    print(size, ratio)


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]))
