"""The machine code of levels that this processor does not have, or has more than: it runs under an emulator."""

import sys
from collections.abc import Iterator

import numpy as np
import onnx
import pytest

import pulse
from bench.models import tcn
from pulse.errors import CompileError
from pulse.jit.storage.package_library import file_of
from pulse.program.compiler import compile_model
from pulse.program.native.native_program import NativeProgram
from pulse.pulsify.driver import pulsify
from streaming.builtin import model_path
from streaming.compilation.warming import kernel_names
from streaming.libraries import build
from tests.invariants.distinct_cases import distinct_cases
from tests.invariants.operator_cases import compare_programs
from tests.invariants.shifted_cases import load_case
from tests.pulse.program.native.lane_models import MODELS, assert_lanes_close, lane, pulses, recurrent
from tests.pulse.program.weight_models import STACKS, stack
from tests.streaming.emulator import PROCESSORS, Emulator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="libraries are for Linux"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
LANES = 9
"""A block of eight, and one alone."""


@pytest.fixture(scope="module", params=PROCESSORS)
def emulator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """An emulator of a level, with all kernels; those that Python calls need the interpreter."""
    level = str(request.param)
    PROCESSORS[level].require()
    folder = tmp_path_factory.mktemp(level)
    kernels = [name for name in kernel_names() if "." not in name]
    libraries = folder / "libraries"
    try:
        index = build([level], libraries, kernels)
    except CompileError as error:
        if "no linker" not in str(error):
            raise
        pytest.skip(str(error))
    with Emulator(level, libraries / file_of(level), list(index.functions), folder) as started:
        yield started


def test_kernels_compute_the_same(emulator: Emulator) -> None:
    """The emulator runs every kind of operator, lanes with weights of each type, and a model with transforms."""
    kinds = exact_kinds(emulator)
    for name in MODELS:
        for weights in ("f32", "bf16", "int8"):
            lanes_equal_streams_here(emulator, tcn() if name == "tcn" else recurrent(name), weights)
    for name in STACKS:
        lanes_equal_streams_here(emulator, stack(name), "int8", "int8")
        lanes_equal_streams_here(emulator, stack(name), "bf16", "bf16")
    denoiser_equals_itself_here(emulator)
    print(
        f"{kinds} kinds of operators; {len(emulator.ran)} kernels ran, not", *emulator.kernels - emulator.ran
    )
    assert kinds >= 400
    assert len(emulator.ran) >= 40


def exact_kinds(emulator: Emulator) -> int:
    """How many whole streams equal the offline model, within the tolerance of streams here."""
    equal = 0
    for streaming in distinct_cases():
        typed = load_case(streaming.case, streaming.axes, {})
        try:
            program = compile_model(pulsify(typed), "numba")
        except CompileError:
            continue
        assert isinstance(program, NativeProgram)
        with emulator.run_here(program):
            equal += compare_programs(typed, [program], dict(streaming.case[2]), streaming.case[0])
    return equal


def lanes_equal_streams_here(
    emulator: Emulator, proto: onnx.ModelProto, weights: str, activations: str = "f32"
) -> None:
    """Compare lanes and a single stream on the emulator with streams on this machine."""
    program = pulse.stream(proto, pulse=2, weights=weights, activations=activations)
    assert isinstance(program, NativeProgram)
    fed = [pulses(program, i, 3) for i in range(LANES)]
    states = [program.spawn() for _ in fed]
    with emulator.run_here(program):
        lanes, single = program.spawn_many(LANES), program.spawn()
        for number in range(3):
            together = lanes.step(np.stack([frames[number] for frames in fed]))
            expected = [state.step(frames[number]) for state, frames in zip(states, fed)]
            for i in range(LANES):
                assert_lanes_close(lane(together, i), expected[i])
            assert_lanes_close(single.step(fed[0][number]), expected[0])


def denoiser_equals_itself_here(emulator: Emulator) -> None:
    """Compare the built-in denoiser on the emulator with this machine."""
    program = pulse.stream(model_path(), pulse=160)
    assert isinstance(program, NativeProgram)
    state_here = program.spawn()
    with emulator.run_here(program):
        state_there = program.spawn()
        for samples in pulses(program, 0, 5):
            assert_lanes_close(state_there.step(samples), state_here.step(samples))
