"""Several streams in one call: each equals a separate stream, whatever the others do."""

import copy

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.jit.registry import KERNELS
from pulse.program.kernels import families as families
from pulse.program.kernels.matmul import product_blocks, product_lanes
from pulse.program.kernels.recurrent import gates, layer_lanes
from pulse.program.native import native_lanes
from pulse.program.native.native_lanes import group_size
from pulse.program.native.native_program import NativeProgram
from pulse.program.program import Program
from pulse.program.streams.lanes import Lanes
from pulse.program.streams.state import State
from tests.pulse.program.native.lane_models import (
    MODELS,
    assert_lanes_close,
    lane,
    program,
    pulses,
    run_lanes_python,
)


def alone_and_together(program: Program, count: int) -> tuple[Lanes, list[State]]:
    return program.spawn_many(count), [program.spawn() for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 70])
@pytest.mark.parametrize("name", MODELS)
def test_every_lane_agrees_with_a_stream_of_its_own(name: str, count: int) -> None:
    compiled = program(name, 2)
    lanes, states = alone_and_together(compiled, count)
    fed = [pulses(compiled, i, 3) for i in range(count)]
    for number in range(3):
        together = lanes.step(np.stack([pulses_of_lane[number] for pulses_of_lane in fed]))
        for i, state in enumerate(states):
            assert_lanes_close(lane(together, i), state.step(fed[i][number]))


@pytest.mark.parametrize("reuses", [False, True])
@pytest.mark.parametrize("count", [3, 4, 9, 14])
@pytest.mark.parametrize("name", ["tcn", "GRU"])
def test_lanes_in_groups_agree_with_streams_of_their_own(
    name: str, count: int, reuses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_lanes, "reuses_weights", lambda rows: reuses)
    monkeypatch.setattr(native_lanes, "CACHE_BYTES", 0)
    monkeypatch.setattr(native_lanes, "MIN_GROUP_LANES", 3)
    compiled = program(name, 2)
    lanes, states = alone_and_together(compiled, count)
    fed = [pulses(compiled, i, 3) for i in range(count)]
    for number in range(3):
        order = [(4 * i + number) % count for i in range(count)] if count == 9 else [*range(count)]
        together = lanes.step(np.stack([fed[i][number] for i in order]), order)
        for place, i in enumerate(order):
            assert_lanes_close(lane(together, place), states[i].step(fed[i][number]))


def test_a_group_is_as_large_as_the_weights_or_the_cache() -> None:
    assert group_size(count=64, lane_bytes=1000, weights=20_000) == 64
    assert group_size(count=64, lane_bytes=native_lanes.CACHE_BYTES // 16, weights=20_000) == 16
    assert (
        group_size(count=64, lane_bytes=native_lanes.CACHE_BYTES, weights=32 * native_lanes.CACHE_BYTES) == 32
    )
    assert (
        group_size(count=64, lane_bytes=native_lanes.CACHE_BYTES, weights=0) == native_lanes.MIN_GROUP_LANES
    )
    assert (
        group_size(count=native_lanes.MIN_GROUP_LANES + 1, lane_bytes=native_lanes.CACHE_BYTES, weights=0)
        == native_lanes.MIN_GROUP_LANES
    )
    assert group_size(count=1, lane_bytes=native_lanes.CACHE_BYTES, weights=0) == 1


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("name", MODELS)
def test_lanes_stall_reset_end_and_continue_independently(name: str, backend: str) -> None:
    compiled = program(name, 1, backend)
    lanes, states = alone_and_together(compiled, 6)
    rng = np.random.default_rng(3)
    fed = [iter(pulses(compiled, i, 40)) for i in range(6)]
    ended: set[int] = set()
    for number in range(20):
        chosen = [int(i) for i in rng.permutation(6)[: rng.integers(0, 7)] if i not in ended]
        x = [next(fed[i]) for i in chosen]
        (port,) = compiled.inputs
        together = lanes.step(np.array(x, np.float32).reshape(-1, *port.shape), chosen)
        for place, i in enumerate(chosen):
            assert_lanes_close(lane(together, place), states[i].step(x[place]))
        if number == 5:
            lanes[2].reset(), states[2].reset()
        if number == 9:
            lanes[4].restore(lanes[1].snapshot()), states[4].restore(states[1].snapshot())
        if number == 12:
            for outputs, expected in zip(lanes[3].flush(), states[3].flush(), strict=True):
                assert_lanes_close(outputs, expected)
            ended.add(3)
            with pytest.raises(InputError, match="lane 3: the stream has ended"):
                lanes.step(np.zeros((1, *port.shape), np.float32), [3])
    for i in sorted(set(range(6)) - ended):
        for outputs, expected in zip(lanes[i].flush(), states[i].flush(), strict=True):
            assert_lanes_close(outputs, expected)


def test_a_lane_that_leaves_is_free_until_one_joins() -> None:
    compiled = program("GRU", 1)
    lanes = compiled.spawn_many(3)
    first = pulses(compiled, 0, 1)[0]
    lanes.step(np.stack([first] * 3))
    with pytest.raises(InputError, match="all 3 lanes are taken"):
        lanes.join()
    lanes.leave(1)
    assert lanes.active_lanes == [0, 2]
    with pytest.raises(InputError, match="lane 1 is free"):
        lanes.step(first[None], [1])
    lanes.step(np.stack([first] * 2))
    assert lanes.join() == 1
    assert lanes[1].clock.pulse == 0
    assert_lanes_close(lane(lanes.step(np.stack([first] * 3)), 1), compiled.spawn().step(first))


def test_refused_steps_leave_the_lanes_unchanged() -> None:
    compiled = program("GRU", 1)
    lanes = compiled.spawn_many(2)
    x = np.stack(pulses(compiled, 0, 2))
    before = [state.snapshot() for state in lanes]
    for wrong, message in (
        (lambda: lanes.step(x[:1]), "expected x: 2,1,5,1,f32, got 1,1,5,1,f32"),
        (lambda: lanes.step(x.astype(np.float64)), "got 2,1,5,1,f64"),
        (lambda: lanes.step({"z": x}), "feed x: 2,1,5,1,f32"),
        (lambda: lanes.step(x, [0, 0]), "name one lane twice"),
        (lambda: lanes.step(x, [0, 2]), "lane 2 does not exist of 2"),
        (lambda: compiled.spawn_many(0), "at least one"),
    ):
        with pytest.raises(InputError, match=message):
            wrong()
    assert [state.snapshot() for state in lanes] == before


@pytest.mark.parametrize(
    ("name", "count", "eight"),
    [*((name, 3, True) for name in MODELS), ("tcn", 6, True), ("GRU", 6, True), ("GRU", 6, False)],
)
def test_lane_kernels_as_plain_python_stay_inside_their_memory(
    name: str, count: int, eight: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (product_lanes, product_blocks, layer_lanes, gates):
        monkeypatch.setattr(module, "HAS_AVX512", eight)
    compiled = program(name, 1)
    assert isinstance(compiled, NativeProgram)
    _, input_place = compiled.input_places[0]
    regions = [
        [compiled.weights.copy(), compiled.initial.copy(), np.zeros(compiled.arena_bytes, np.uint8)]
        for _ in range(count)
    ]
    fed, states = [pulses(compiled, i, 2) for i in range(count)], [compiled.spawn() for _ in range(count)]
    for number in range(2):
        for i in range(count):
            input_place.view(regions[i][input_place.region])[...] = fed[i][number]
        run_lanes_python(compiled.unlinked, regions)
        for i, state in enumerate(states):
            outputs = {
                port.name: place.view(regions[i][place.region])
                for port, (_, place) in zip(compiled.outputs, compiled.output_places)
            }
            assert_lanes_close(outputs, state.step(fed[i][number]))


def test_the_kernels_with_weights_have_a_form_for_lanes() -> None:
    forms = {
        f"{name}{form}" for name in ("product", "gru", "lstm") for form in ("", "_f16", "_bf16", "_int8")
    }
    forms |= {"product_of_codes", "product_of_codes_bf16"}
    assert {name for name, kernel in KERNELS.items() if kernel.lanes} == forms


@pytest.mark.parametrize("name", MODELS)
def test_lanes_that_step_alone_have_the_bits_of_a_stream(name: str) -> None:
    compiled = program(name, 2)
    lanes, states = alone_and_together(compiled, 20)
    lanes.alone = True
    fed = [pulses(compiled, i, 3) for i in range(20)]
    for number in range(3):
        together = lanes.step(np.stack([pulses_of_lane[number] for pulses_of_lane in fed]))
        for i, state in enumerate(states):
            alone = state.step(fed[i][number])
            assert all(np.array_equal(array, alone[port]) for port, array in lane(together, i).items())
    assert copy.copy(lanes).alone
