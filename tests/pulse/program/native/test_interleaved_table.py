"""Lanes with interleaved memories: sixteen streams in one table, each as a separate stream."""

import copy
import pickle
from collections.abc import Callable

import numpy as np
import onnx
import pytest

import pulse
from pulse.errors import PulseError
from pulse.facts import Array
from pulse.jit.registry import KERNELS
from pulse.ops.spectral import dft_matrix
from pulse.program.compiler import compile_model
from pulse.program.machine.machine import run_python
from pulse.program.native import interleaved_table, lane_blocks, native_lanes
from pulse.program.native.interleaved_table import InterleavedTable, interleave
from pulse.program.native.kernel_program import KernelProgram
from pulse.program.native.native_program import NativeProgram
from pulse.program.native.sliding_windows import POSITIONS
from pulse.program.streams.lanes import Lanes
from pulse.program.streams.state import State
from pulse.program.table.emitted import make_table
from pulse.program.table.memory import Region
from pulse.pulsify.driver import pulsify
from pulse.support.mapping import aligned_bytes
from tests.invariants.graphs import random_model
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.scan import smoothing_body
from tests.pulse.program.native.lane_models import assert_lanes_close

LANES = 16
CHANNELS, BINS = 4, 6


def layers_of_all_kinds() -> onnx.ModelProto:
    """Convolutions in time and frequency, dilated, by channel, transposed, shuffled; small GRUs; a norm; gates."""
    constants = {
        "k1": floats("k1", CHANNELS, 2, 2, 3),
        "k2": floats("k2", CHANNELS, 1, 3, 3),
        "k3": floats("k3", CHANNELS, 2 * CHANNELS, 1, 1) * np.float32(0.5),
        "k4": floats("k4", CHANNELS, 1, 2, 3),
        "slope": floats("slope", CHANNELS, 1, 1),
        "w": floats("w", 2, 12, CHANNELS),
        "r": floats("r", 2, 12, 4) * np.float32(0.5),
        "b": floats("b", 2, 24),
        "scale": floats("scale", 8),
        "shift": floats("shift", 8),
    }
    nodes = [
        node("Conv", "x k1", "wide", pads=[1, 1, 0, 1]),
        node("PRelu", "wide slope", "bent"),
        node("Conv", "bent k2", "deep", pads=[4, 1, 0, 1], dilations=[2, 1], group=CHANNELS),
        *(node("Unsqueeze", f"{group} one", f"wide_{group}") for group in ("deep", "bent")),
        node("Concat", "wide_deep wide_bent", "stack", axis=1),
        node("Transpose", "stack", "turned", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "turned channels", "shuffled"),
        node("Conv", "shuffled k3", "mixed"),
        node("Add", "mixed bent", "sum"),
        node("ConvTranspose", "sum k4", "back", pads=[0, 1, 1, 1], group=CHANNELS),
        node("Squeeze", "back zero", "planes"),
        node("Transpose", "planes", "sequences", perm=[2, 1, 0]),
        node(
            "GRU", "sequences w r b", "both", hidden_size=4, direction="bidirectional", linear_before_reset=1
        ),
        node("Transpose", "both", "beside", perm=[2, 0, 1, 3]),
        node("Reshape", "beside shape", "rows"),
        node("LayerNormalization", "rows scale shift", "normal", axis=-1, epsilon=1e-5),
        node("Sigmoid", "normal", "gate"),
        node("Mul", "gate rows", "y"),
    ]
    constants |= {"zero": np.array([0]), "one": np.array([1]), "shape": np.array([0, BINS, 8])}
    constants["channels"] = np.array([0, 2 * CHANNELS, -1, BINS])
    return model(nodes, {"x": floats("x", 1, 2, 9, BINS)}, constants, stream={"x": 2})


def attentive() -> onnx.ModelProto:
    """A gated convolution, a transform, products of bins with each other, means, a filter bank, an LSTM in time."""
    bank = floats("bank", 36, 48) * (np.abs(np.arange(36)[:, None] - np.arange(48) * 0.75) < 2)
    basis = dft_matrix(64, 1, 64, 33, False).transpose(1, 0, 3, 2).reshape(64, 66).astype(np.float32)
    constants = {
        "k": floats("k", 128, 3, 2),
        "basis": basis,
        "bank": bank,
        "w": floats("w", 1, 32, 48) * np.float32(0.3),
        "r": floats("r", 1, 32, 8) * np.float32(0.3),
        "b": floats("b", 1, 64),
        "tiles": np.array([0, 0, 6, 11]),
        "flat": np.array([0, 0, 36]),
    }
    nodes = [
        node("Conv", "x k", "both", pads=[1, 0]),
        node("Split", "both", "left right", axis=1, num_outputs=2),
        node("Tanh", "left", "bent"),
        node("Sigmoid", "right", "gate"),
        node("Mul", "bent gate", "gated"),
        node("Transpose", "gated", "frames", perm=[0, 2, 1]),
        node("MatMul", "frames basis", "bins"),
        node("Reshape", "bins tiles", "rows"),
        node("Transpose", "rows", "columns", perm=[0, 1, 3, 2]),
        node("MatMul", "rows columns", "scores"),
        node("Softmax", "scores", "shares", axis=3),
        node("Reshape", "shares flat", "row"),
        node("ReduceMean", "row", "mean", axes=[2]),
        node("Sub", "row mean", "centred"),
        node("MatMul", "centred bank", "bands"),
        node("Transpose", "bands", "steps", perm=[1, 0, 2]),
        node("LSTM", "steps w r b", "y", hidden_size=8),
    ]
    return model(nodes, {"x": floats("x", 1, 3, 9)}, constants, stream={"x": 2})


def program(
    pulse_frames: int = 1, source: Callable[[], onnx.ModelProto] = layers_of_all_kinds
) -> NativeProgram:
    compiled = pulse.stream(source(), pulse=pulse_frames)
    assert isinstance(compiled, NativeProgram)
    return compiled


@pytest.fixture(autouse=True)
def vectors_of_sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all processors interleave, not only those with vectors of sixteen."""
    monkeypatch.setattr(lane_blocks, "HAS_AVX512", True)


class LanesAndStates:
    """Lanes, and for each a state of its own that is fed the same."""

    def __init__(self, compiled: NativeProgram, count: int, seed: int = 0) -> None:
        self.program = compiled
        self.lanes: Lanes = compiled.spawn_many(count)
        self.states: list[State] = [compiled.spawn() for _ in range(count)]
        self.rng = np.random.default_rng(seed)
        (self.port,) = [port for port in compiled.inputs if port.streams]

    def step(self, numbers: list[int] | None = None) -> None:
        """Step the lanes and the states, and compare their outputs."""
        chosen = list(range(len(self.states))) if numbers is None else numbers
        x = self.rng.standard_normal((len(chosen), *self.port.shape)).astype(self.port.dtype)
        together = self.lanes.step({self.port.name: x}, numbers)
        alone = [self.states[number].step(x[place]) for place, number in enumerate(chosen)]
        assert_lanes_close(
            together, {name: np.stack([outputs[name] for outputs in alone]) for name in together}
        )


def interleaved_kernels(compiled: NativeProgram) -> list[str]:
    """The kernels of the interleaved table of a program."""
    interleaved = interleave(compiled)
    return [row.kernel for row in interleaved.instructions]


def test_the_two_models_use_every_interleaved_kernel() -> None:
    every = {name for name in KERNELS if name.startswith("interleaved_")}
    assert (
        every
        == {
            name
            for compiled in (program(), program(source=attentive))
            for name in interleaved_kernels(compiled)
        }
        & every
    )


@pytest.mark.parametrize("source", [layers_of_all_kinds, attentive])
@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize("count", [16, 37])
def test_every_interleaved_lane_agrees_with_a_stream_of_its_own(
    count: int, frames: int, source: Callable[[], onnx.ModelProto]
) -> None:
    pair = LanesAndStates(program(frames, source), count)
    for _ in range(9):
        pair.step()
    for number in (0, 7, count - 1):
        for outputs, expected in zip(pair.lanes[number].flush(), pair.states[number].flush(), strict=True):
            assert_lanes_close(outputs, expected)


def recurrent() -> onnx.ModelProto:
    """A body that runs for every frame, with a constant first state."""
    scanned = node("Scan", "s x", "last y", body=smoothing_body(), num_scan_inputs=1)
    constants = {"s": floats("s", 2, 4), "w": floats("w", 3, 4)}
    return model([scanned], {"x": floats("x", 7, 2, 3)}, constants, stream={"x": 0})


@pytest.mark.parametrize("frames", [1, 3])
def test_lanes_of_scans_agree_with_streams(frames: int) -> None:
    compiled = program(frames, recurrent)
    assert "keep_frame" in {row.kernel for row in compiled.instructions}
    assert not is_refused(compiled)
    pair = LanesAndStates(compiled, 16)
    for _ in range(5):
        pair.step()


def test_lanes_stall_reset_end_and_continue_independently() -> None:
    pair = LanesAndStates(program(), 20, seed=1)
    order = [*range(4, 20), 2, 0, 1, 3]
    for number in range(24):
        if number % 3 == 1:
            pair.step(order if number % 2 else order[::-1])
        elif number % 7 == 5:
            pair.step(pair.rng.permutation(20)[:11].tolist())
        else:
            pair.step()
        if number == 4:
            pair.lanes[2].reset()
            pair.states[2].reset()
        if number == 10:
            pair.lanes[5].restore(pair.lanes[1].snapshot())
            pair.states[5].restore(pair.states[1].snapshot())
        if number == 15:
            x = np.zeros(pair.port.shape, pair.port.dtype)
            assert_lanes_close(pair.lanes[6].step(x), pair.states[6].step(x))
    for outputs, expected in zip(pair.lanes[9].flush(), pair.states[9].flush(), strict=True):
        assert_lanes_close(outputs, expected)
    pair.lanes.leave(9)
    pair.step([number for number in range(20) if number != 9])
    assert pair.lanes.join() == 9
    pair.states[9].reset()
    for _ in range(4):
        pair.step()


@pytest.mark.parametrize("call", ["step", "try_step"])
def test_a_lane_writes_into_arrays_between_steps_of_all(call: str) -> None:
    pair = LanesAndStates(program(), 16, seed=2)
    for _ in range(3):
        pair.step()
        x = floats("own", *pair.port.shape)
        (port,) = pair.program.outputs
        mine = {port.name: np.zeros(port.shape, port.dtype)}
        step, arguments = getattr(pair.lanes[3], call), (x, mine)
        results = step(*arguments, False) if call == "try_step" else step(*arguments)
        assert_lanes_close(results, pair.states[3].step(x))
        assert results[port.name] is mine[port.name]


def test_snapshots_copies_and_pickles_of_lanes_continue_alike() -> None:
    pair = LanesAndStates(program(), 16, seed=3)
    for _ in range(5):
        pair.step()
    clocks = [state.clock.pulse for state in pair.lanes]
    assert clocks == [5] * 16
    (port,) = pair.program.inputs
    x = floats("more", 16, *port.shape)
    others = [copy.copy(pair.lanes), pickle.loads(pickle.dumps(pair.lanes))]
    moved = pair.program.spawn()
    moved.restore(pair.lanes[11].snapshot())
    expected = pair.lanes.step(x)
    for other in others:
        assert_lanes_close(other.step(x), expected)
    assert_lanes_close(moved.step(x[11]), {name: array[11] for name, array in expected.items()})


def test_a_packed_lane_keeps_its_own_memory() -> None:
    pair = LanesAndStates(program(), 32, seed=4)
    for _ in range(3):
        pair.step()
    lane = pair.lanes[20]
    assert isinstance(lane, native_lanes.LaneState)
    lane.pack()
    for _ in range(3):
        pair.step()
    assert lane.memory.ctypes.data == lane.bases[Region.STATE]


def test_all_lanes_of_a_program_share_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are packed once for a program, and again for one that was pickled; too few lanes need none."""
    packed: list[KernelProgram] = []

    def count(native: KernelProgram) -> InterleavedTable:
        packed.append(native)
        return interleave(native)

    monkeypatch.setattr(interleaved_table, "interleave", count)
    native = program()
    native.spawn_many(LANES - 1)
    assert not packed
    pairs = [LanesAndStates(native, count) for count in (LANES, 2 * LANES)]
    for pair in pairs:
        for _ in range(3):
            pair.step()
    native.with_threads(1).spawn_many(LANES)
    assert packed == [native]
    pickle.loads(pickle.dumps(native)).spawn_many(LANES)
    assert len(packed) == 2
    assert packed[1] is not native


def test_the_rows_as_plain_python_stay_inside_their_memory() -> None:
    compiled = program()
    lanes = compiled.spawn_many(LANES)
    (port,) = compiled.inputs
    x = floats("plain", 4, LANES, *port.shape)
    for number in range(3):
        lanes.step(x[number])
    interleaved = interleave(compiled)
    assert interleaved.steady_from <= 3
    memories = np.stack([memory_of(state) for state in lanes])
    sizes = memories.nbytes, interleaved.arena_bytes, interleaved.sliding.bytes
    regions = [interleaved.weights.copy(), *map(aligned_bytes, sizes)]
    regions[1].view(np.int32).reshape(-1, LANES)[...] = memories.T
    interleaved.sliding.copy_in(regions[1], regions[3])
    (begin,), (end,) = interleaved.inputs, interleaved.outputs
    regions[2][begin : begin + x[3].nbytes] = x[3].reshape(-1).view(np.uint8)
    run_python(make_table(interleaved.instructions), regions)
    for name, expected in lanes.step(x[3]).items():
        output = regions[2][end : end + expected.nbytes].view(np.float32).reshape(expected.shape)
        assert_lanes_close({name: output}, {name: expected})


def delays(length: int, pulse: int) -> NativeProgram:
    """Two dilated convolutions by channel, of as many channels, between products."""
    by_channel, square = floats("by channel", CHANNELS, 1, 3), floats("square", CHANNELS, CHANNELS, 1)
    nodes = [
        node("Conv", "x square", "a"),
        node("Conv", "a by_channel", "b", pads=[2 * length, 0], dilations=[length], group=CHANNELS),
        node("Conv", "b square", "c"),
        node("Conv", "c by_channel", "d", pads=[4 * length, 0], dilations=[2 * length], group=CHANNELS),
        node("Conv", "d square", "y"),
    ]
    constants = {"by_channel": by_channel, "square": square}
    return program(
        pulse, lambda: model(nodes, {"x": floats("x", 1, CHANNELS, 9)}, constants, stream={"x": 2})
    )


@pytest.mark.parametrize(("length", "pulse", "slides"), [(3, 1, 2), (3, 3, 2), (1, 2, 1), (1, 3, 0)])
def test_windows_of_histories_of_at_least_two_pulses_slide(length: int, pulse: int, slides: int) -> None:
    """The lanes have their histories at any of the positions of the windows."""
    compiled = delays(length, pulse)
    interleaved = interleave(compiled)
    assert len(interleaved.sliding.windows) == slides
    assert interleaved_kernels(compiled).count("move") == 2 - slides
    for steps in range(1, 2 * POSITIONS + 2):
        pair = LanesAndStates(compiled, 16, seed=steps)
        for _ in range(interleaved.steady_from + steps):
            pair.step()
        pair.step([5, 9])
        pair.step()


def memory_of(state: State) -> Array:
    assert isinstance(state, native_lanes.LaneState)
    return np.frombuffer(state.memory, np.int32)


def is_refused(compiled: NativeProgram) -> bool:
    return compiled.interleaved_table is None


def test_programs_without_such_a_form_step_in_groups() -> None:
    proto = model([node("ArgMax", "x", "y", axis=1)], {"x": floats("x", 1, 5, 9)}, {}, stream={"x": 2})
    compiled = pulse.stream(proto, pulse=2)
    assert isinstance(compiled, NativeProgram)
    assert is_refused(compiled)
    pair = LanesAndStates(compiled, 18)
    for _ in range(3):
        pair.step()


def assert_invariant(seeds: range) -> tuple[int, int]:
    """Compare random graphs in 17 lanes with streams; returns the number of graphs, and of those interleaved."""
    tried = interleaving = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        typed = random_model(rng, int(rng.integers(2, 8)))
        simplified = typed.declutter() if seed % 2 else typed
        compiled = compile_model(
            pulsify(simplified, pulse=pulsify(simplified).pulse * int(rng.integers(1, 4)))
        )
        assert isinstance(compiled, NativeProgram)
        if any(not port.streams for port in compiled.inputs):
            continue
        tried += 1
        if is_refused(compiled):
            continue
        interleaving += 1
        pair = LanesAndStates(compiled, 17, seed)
        try:
            for _ in range(7):
                pair.step()
            for number in (3, 16):
                for outputs, expected in zip(
                    pair.lanes[number].flush(), pair.states[number].flush(), strict=True
                ):
                    assert_lanes_close(outputs, expected)
        except PulseError as error:
            raise AssertionError(f"seed {seed}") from error
    return tried, interleaving


def test_lanes_of_random_graphs_agree_with_streams() -> None:
    tried, interleaving = assert_invariant(range(30))
    assert tried > interleaving > 5


@pytest.mark.slow
def test_lanes_of_many_random_graphs_agree_with_streams() -> None:
    tried, interleaving = assert_invariant(range(20_000, 20_400))
    print(tried, interleaving)
    assert interleaving > 100
