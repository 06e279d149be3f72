"""Steps on several threads: the bits of one thread, threads that end, programs with a given number of them."""

import gc
import os
import pickle
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

import pulse
from bench.models import tcn
from bench.models.conformer import conformer
from bench.models.gru import gru
from bench.models.seanet import decoder
from bench.models.separator import separator
from pulse.errors import InputError
from pulse.facts import Array
from pulse.jit.registry import kernel_of
from pulse.jit.row_cuts import RowCut, best_cut, cut_rows
from pulse.jit.rows.pointer import ARENA
from pulse.ops.spectral import dft_matrix
from pulse.program.machine import machine, team, thread_cuts
from pulse.program.native.kernel_program import KernelProgram
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.native.native_program import NativeProgram
from pulse.program.native.native_state import NativeState
from pulse.program.program import Program
from pulse.program.table.memory import Region, align
from pulse.program.table.table import link, row_starts
from pulse.support.mapping import aligned_bytes
from streaming.session import Session
from tests.failed_cases import FailedCases
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.families import FAMILIES
from tests.pulse.cases.recurrent import weights
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.program.programs import program as small_program
from tests.pulse.program.static_models import static_cases
from tests.shared import shared_path

HELPER = "pulse helper"
SOURCES: dict[str, tuple[Callable[[], onnx.ModelProto], int]] = {
    "tcn": (tcn, 24),
    "conformer": (conformer, 40),
    "gru": (gru, 20),
    "decoder": (decoder, 3),
    "separator": (separator, 1600),
}
"""Models of gated and depthwise convolutions, attention, recurrence; frames of a pulse."""


@pytest.fixture(autouse=True)
def all_rows_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short rows too, in all steps, on any machine."""
    monkeypatch.setattr(thread_cuts, "MIN_CUT_WORK", 0)
    monkeypatch.setattr(team, "core_count", lambda: 4)
    monkeypatch.setattr(NativeExecutable, "measure_step", lambda program: 1 << 40)


def lstm() -> onnx.ModelProto:
    """A convolution, an LSTM over it, a product."""
    constants = weights("LSTM", 1, 40, 24) | {"k": floats("k", 24, 24, 3), "out": floats("out", 40, 70)}
    nodes = [
        node("Conv", "x k", "seen", pads=[2, 0]),
        node("Transpose", "seen", "frames", perm=[2, 0, 1]),
        node("LSTM", "frames w r b", "y", hidden_size=40),
        node("Squeeze", "y axes", "rows"),
        node("MatMul", "rows out", "z"),
    ]
    axes = {"axes": np.array([1], np.int64)}
    return model(nodes, {"x": floats("x", 1, 24, 9)}, constants | axes, stream={"x": 2}, outputs="z")


def transform(frames: int) -> Program:
    """A Fourier transform of many rows, and a softmax over its bins."""
    builder = ModelBuilder(x="1,T,64")
    basis = dft_matrix(64, 1, 64, 33, False).transpose(1, 0, 3, 2).reshape(64, 66).astype(np.float32)
    from pulse.ops.matmul import MatMul

    return (
        builder.model(builder.add("spectrum", MatMul(), builder["x"], builder.constant(basis, "basis")))
        .pulsify(None, frames)
        .compile()
    )


@cache
def programs(form: str = "f32") -> Mapping[str, Program]:
    """All programs in a form of their weights, compiled once."""
    programs = {
        name: pulse.stream(source(), frames, weights=form) for name, (source, frames) in SOURCES.items()
    }
    programs["lstm"] = pulse.stream(lstm(), 21, weights=form)
    if form == "f32":
        programs["transform"] = transform(9)
    return programs


def feeds(program: Program, count: int, seed: int = 0) -> list[dict[str, Array]]:
    """Return pulses of noise."""
    rng = np.random.default_rng(seed)
    return [
        {
            port.name: (0.3 * rng.standard_normal(port.shape)).astype(port.dtype)
            for port in program.inputs
            if port.streams
        }
        for _ in range(count)
    ]


def bits(result: dict[str, Array]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in result.items()}


class Rows:
    """The rows of a program, run one by one: whole, and in parts, one part after the other."""

    def __init__(self, program: KernelProgram, feed: dict[str, Array], seed: int = 0) -> None:
        self.program = program
        self.scratch_at = align(program.arena_bytes)
        self.memories = {
            Region.WEIGHTS: program.weights,
            Region.STATE: aligned_bytes(program.initial.size),
            Region.ARENA: aligned_bytes(self.scratch_at + (1 << 20)),
        }
        self.memories[Region.STATE][:] = program.initial
        self.bases = np.array([memory.ctypes.data for memory in self.memories.values()], np.int64)
        for name, place in program.input_places:
            place.view(self.memories[place.region])[...] = feed[name]

    def run(self, row: list[int]) -> None:
        words = np.array(row, np.int64)
        machine.run(words.ctypes.data, 1, self.bases.ctypes.data)

    def state_and_arena(self) -> tuple[Array, Array]:
        """The state and the arena, without the scratch memory of parts at its end."""
        return self.memories[Region.STATE], self.memories[Region.ARENA][: self.scratch_at]

    def copies(self) -> list[Array]:
        return [memory.copy() for memory in self.state_and_arena()]

    def put_back(self, memories: list[Array]) -> None:
        for memory, before in zip(self.state_and_arena(), memories):
            memory[:] = before

    def compare(self, counts: tuple[int, ...], reached: Counter[str]) -> None:
        """Run every row whole and in ``counts`` parts, the parts in both orders; the memories must be equal."""
        linked = link(self.program.unlinked).tolist()
        for start in row_starts(self.program.unlinked):
            row = linked[start : start + linked[start + 1]]
            kernel = kernel_of(int(self.program.unlinked[start]))
            before = self.copies()
            self.run(row)
            after = self.copies()
            for count in counts:
                parts = best_cut(kernel, row, count)
                if parts is None:
                    continue
                cut = cut_rows(kernel, row, parts, self.scratch_at)
                for ordered in (cut, cut[::-1]):
                    self.put_back(before)
                    for part in ordered:
                        self.run(part)
                    self.assert_same(after, row, parts, kernel.name)
                reached[f"{kernel.name} {parts.cut.count}"] += 1
            self.put_back(after)

    def assert_same(self, expected: list[Array], row: list[int], parts: RowCut, name: str) -> None:
        state, arena = self.state_and_arena()
        assert np.array_equal(state, expected[0]), name
        if np.array_equal(arena, expected[1]):
            return
        ignored = np.zeros(arena.size, bool)
        if parts.cut.scratch:
            scratch = [word & ((1 << 48) - 1) for word in row[2:] if word >> 48 == ARENA]
            for first in scratch:  # what of them is scratch lies where the whole row has its own
                ignored[first : first + parts.scratch_bytes] |= first in _scratch_places(row, parts, name)
        assert np.array_equal(arena[~ignored], expected[1][~ignored]), (name, parts)


def _scratch_places(row: list[int], parts: RowCut, name: str) -> set[int]:
    """Where the scratch memory of a whole row is."""
    from pulse.jit.registry import KERNELS

    parts_of_row = cut_rows(KERNELS[name], row, parts, 1 << 40)
    return {
        whole & ((1 << 48) - 1)
        for whole, second in zip(row, parts_of_row[1])
        if second >> 48 == ARENA and second & ((1 << 48) - 1) >= 1 << 40
    }


def test_parts_give_the_bits_of_the_whole_row() -> None:
    reached: Counter[str] = Counter()
    for form in ("f32", "bf16", "int8"):
        for program in programs(form).values():
            assert isinstance(program, NativeProgram)
            rows = Rows(program, feeds(program, 1)[0])
            for feed in feeds(program, 1, 1):
                for name, place in program.input_places:
                    place.view(rows.memories[place.region])[...] = feed[name]
                rows.compare((2, 3), reached)
    expected = {"product M", "product N", "product_bf16 N", "product_int8 M", "depthwise M", "fourier M"}
    expected |= {"layer_norm M", "band_attention M", "chain s2", "chain s3", "product_few M"}
    assert not expected - set(reached), reached


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_of_a_row_compute_the_bits_of_the_whole_row(family: str) -> None:
    """Every row that can be cut, of all operator cases except those that differ only in their opset or symbols."""
    reached: Counter[str] = Counter()
    failed = FailedCases()
    for case in static_cases(family):
        if isinstance(case.program, NativeProgram):
            with failed.collect(case.name):
                Rows(case.program, case.feeds).compare((2, 3), reached)
    assert not failed, "\n".join(failed)
    if family in ("conv", "matmul", "elementwise", "norm", "attention", "recurrent"):
        assert reached


@pytest.mark.parametrize("threads", [2, 3])
def test_streams_give_the_bits_of_one_thread(threads: int) -> None:
    for name, alone in programs().items():
        shared_steps = alone.with_threads(threads)
        assert isinstance(shared_steps, NativeProgram)
        assert shared_steps.thread_cuts.count > 0, name
        single, several = alone.spawn(), shared_steps.spawn()
        for feed in feeds(alone, 4):
            assert bits(several.step(feed)) == bits(single.step(feed)), name
        assert several.snapshot() == single.snapshot()


def test_sessions_give_the_bits_of_one_thread() -> None:
    alone = programs()["lstm"]
    (port,) = alone.inputs
    x = floats("session", *(100 if axis == port.axis else size for axis, size in enumerate(port.shape)))
    results: list[list[Array]] = []
    for program in (alone, alone.with_threads(2)):
        session = Session(program)
        results.append([session.push(x)["z"], session.flush()["z"]])
    assert all(np.array_equal(left, right) for left, right in zip(*results))


def test_streams_without_a_free_team_compute_the_same_bits() -> None:
    """Six threads step and there is one team: a stream that finds it busy runs its parts alone."""
    alone = programs()["tcn"]
    program, pulses = alone.with_threads(2), feeds(alone, 60)
    single = alone.spawn()
    expected, wrong = [bits(single.step(feed)) for feed in pulses], list[int]()

    def stream(number: int) -> None:
        state = program.spawn()
        if [bits(state.step(feed)) for feed in pulses] != expected:
            wrong.append(number)

    running = [threading.Thread(target=stream, args=(number,)) for number in range(6)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not wrong


def helpers() -> int:
    return sum(thread.name.startswith(HELPER) for thread in threading.enumerate())


def test_helpers_end_with_the_last_stream() -> None:
    gc.collect()
    before = helpers()
    program = pulse.stream(tcn(), 32).with_threads(4)
    states = [program.spawn() for _ in range(5)]
    assert helpers() == before + 3  # all streams share them
    states[0].step(feeds(program, 1)[0])
    del program
    assert helpers() == before + 3
    del states
    gc.collect()
    assert helpers() == before


def test_one_thread_is_the_default_and_has_no_helper() -> None:
    gc.collect()
    before = helpers()
    program = pulse.stream(tcn(), 8)
    state = program.with_threads(2).with_threads(1).spawn()
    assert isinstance(state, NativeState)
    assert isinstance(program, NativeProgram)
    assert program.threads == 1
    assert state.call[0] == program.table.ctypes.data
    assert helpers() == before


def test_a_program_of_short_rows_has_no_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_cuts, "MIN_CUT_WORK", 1 << 40)
    gc.collect()
    before = helpers()
    program = pulse.stream(tcn(), 1, threads=2)
    state = program.spawn()
    assert program.threads == 2
    assert helpers() == before
    assert bits(state.step(feeds(program, 1)[0])) == bits(
        pulse.stream(tcn(), 1).spawn().step(feeds(program, 1)[0])
    )


def test_pickles_and_copies_keep_the_number_of_threads(tmp_path: Path) -> None:
    program = pulse.stream(tcn(), 8, threads=2)
    program.save(tmp_path / "tcn.pulse")
    stored = Program.load(tmp_path / "tcn.pulse").with_threads(2)
    single, pulses = program.with_threads(1).spawn(), feeds(program, 3)
    state = program.spawn()
    assert bits(state.step(pulses[0])) == bits(single.step(pulses[0]))
    again = [pickle.loads(pickle.dumps(state)), pickle.loads(pickle.dumps(stored)).spawn()]
    again[1].restore(state.snapshot())
    for feed in pulses[1:]:
        expected = bits(single.step(feed))
        assert [bits(copied.step(feed)) for copied in again] == [expected, expected]
    assert pickle.loads(pickle.dumps(program)).threads == pickle.loads(pickle.dumps(stored)).threads == 2


def test_the_profile_and_the_listing_show_the_parts_of_rows() -> None:
    program = pulse.stream(tcn(), 24, threads=2)
    assert isinstance(program, NativeProgram)
    state = program.spawn()
    profile = state.profile(20)
    assert {row.parts for row in profile} == {1, 2}
    assert sum(row.parts > 1 for row in profile) == program.thread_cuts.count
    assert sum("  in parts of " in line for line in program.listing()) == program.thread_cuts.count
    assert not any("  in parts of " in line for line in program.with_threads(1).listing())


@pytest.mark.parametrize(
    ("threads", "reason"), [(0, "at least one thread"), (-3, "at least one thread"), (5, "may use 4 cores")]
)
def test_invalid_numbers_of_threads_are_refused(threads: int, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        pulse.stream(tcn(), 1, threads=threads)


def test_lanes_and_the_reference_run_on_one_thread() -> None:
    with pytest.raises(InputError, match=r"with_threads\(1\)"):
        small_program("windows").with_threads(2).spawn_many(2)
    with pytest.raises(InputError, match="numpy backend runs on one thread"):
        small_program("windows", "numpy").with_threads(2)
    assert small_program("windows", "numpy").with_threads(1).threads == 1


CHILD = """
import os, sys
import numpy as np
import pulse
from bench.models import tcn
from pulse.program.machine import thread_cuts, team
thread_cuts.MIN_CUT_WORK, team.core_count = 0, lambda: 4
program = pulse.stream(tcn(), 8, threads=2)
state, alone = program.spawn(), program.with_threads(1).spawn()
(port,) = program.inputs
pulses = np.random.default_rng(0).standard_normal((6, *port.shape)).astype(np.float32)
same = lambda left, right: all(left[name].tobytes() == right[name].tobytes() for name in right)
assert same(state.step(pulses[0]), alone.step(pulses[0]))
if sys.argv[1] == "fork":
    child = os.fork()
    fresh = program.spawn()
    fresh.restore(state.snapshot())
    for pulse_in in pulses[1:]:
        expected = alone.step(pulse_in)
        assert same(state.step(pulse_in), expected) and same(fresh.step(pulse_in), expected)
    if child:
        assert os.waitpid(child, 0)[1] == 0
print("done")
"""


@pytest.mark.parametrize("how", ["exit", "fork"])
def test_a_process_ends_and_may_fork(how: str) -> None:
    if how == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, how],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[4],
    )
    assert process.returncode == 0, process.stderr
    assert set(process.stdout.split()) == {"done"}


@pytest.mark.parametrize(
    ("name", "frames"),
    [
        ("gtcrn_offline", 8),
        ("fireredvad_stream", 16),
        ("swift_f0", 1024),
        ("dtln_2", 1),
        ("fastenhancer_b_spec", 1),
    ],
)
def test_published_models_give_the_bits_of_one_thread(name: str, frames: int) -> None:
    alone = pulse.stream(shared_path(f"models/{name}.onnx"), frames)
    single, several = alone.spawn(), alone.with_threads(2).spawn()
    for feed in feeds(alone, 5):
        assert bits(several.step(feed)) == bits(single.step(feed))
