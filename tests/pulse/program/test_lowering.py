"""The lowering of pulsed graphs to instructions: views, places in memory and refusals."""

from collections.abc import Sequence

import numpy as np
import pytest

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.loading.load import load
from pulse.ops.cumulative import CumSum
from pulse.ops.op import Env
from pulse.ops.shape import AddAxis, Transpose
from pulse.program.compiler import compile_model
from pulse.program.lowering import LOWER, Lowering
from pulse.program.native.native_program import NativeProgram
from pulse.program.step import lower_step
from pulse.program.table.loops import Loops
from pulse.program.table.memory import Region, TensorView
from pulse.pulsify.driver import pulsify
from pulse.pulsify.network import PulsedNode
from pulse.typed import TypedNetwork
from tests.invariants.graphs import random_model
from tests.pulse.cases.build import model as onnx_model
from tests.pulse.cases.build import node
from tests.pulse.cases.scan import body
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.plain_ops import PointwiseOp
from tests.pulse.program.static_models import static_model


class Odd(PointwiseOp):
    """An op with everything but a kernel."""

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [inputs[0] + 1]


class Stranger(Odd):
    """Another op without a lowering."""


def kernels(typed: TypedNetwork, pulse: int = 4) -> list[str]:
    """The kernels of each instruction but the clock's."""
    return [row.kernel for row in NativeProgram(pulsify(typed, pulse=pulse)).instructions[:-1]]


def test_all_ops_without_a_kernel_are_named_at_once() -> None:
    """The way out that the message names works."""
    builder = ModelBuilder(x="1,2,T")
    x = builder.add("first", Odd(), builder["x"])
    x = builder.add("second", Stranger(), builder.apply("relu", x))
    model = pulsify(builder.model(builder.add("third", Odd(), x)), pulse=4)
    with pytest.raises(CompileError, match=r"first \(Odd\)") as caught:
        compile_model(model)
    message = str(caught.value)
    assert all(text in message for text in ("first (Odd)", "second (Stranger)", "third (Odd)"))
    assert "relu" not in message
    assert 'backend="numpy"' in message
    assert compile_model(model, "numpy").spawn().step(np.zeros((1, 2, 4), np.float32))["third"].min() == 3


def test_a_lowering_of_an_own_op_can_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """This one returns its input."""

    def lower(lowering: Lowering, node: PulsedNode, op: Odd) -> list[TensorView]:
        return [lowering.value(node.inputs[0])]

    monkeypatch.setitem(LOWER, Odd, lower)
    builder = ModelBuilder(x="1,2,T")
    program = compile_model(pulsify(builder.model(builder.add("odd", Odd(), builder["x"])), pulse=4))
    x = np.ones((1, 2, 4), np.float32)
    np.testing.assert_array_equal(program.spawn().step(x)["odd"], x)


def test_unknown_backends_are_refused_with_the_known_ones() -> None:
    builder = ModelBuilder(x="1,2,T")
    model = pulsify(builder.model(builder.apply("relu", builder["x"])), pulse=4)
    with pytest.raises(CompileError, match="no backend 'cuda'; choose numba, numpy or onnxruntime"):
        compile_model(model, "cuda")
    assert (compile_model(model).backend, compile_model(model, "numpy").backend) == ("numba", "numpy")


def test_needed_kernels_are_announced_before_compilation() -> None:
    """Each kernel is in the one announcement once."""
    builder = ModelBuilder(x="1,2,T")
    announced: list[Sequence[str]] = []
    model = pulsify(builder.model(builder.apply("relu", builder.conv(builder["x"], 3))), pulse=4)
    compile_model(model, prepare=announced.append)
    (needed,) = announced
    assert sorted(needed) == sorted({*kernels(model.typed), "tick"})


def test_views_cost_no_instruction() -> None:
    """Transposes and new axes only change strides."""
    builder = ModelBuilder(x="1,2,T")
    x = builder.apply("relu", builder["x"], name="a")
    x = builder.add("flip", Transpose((2, 1, 0)), x)
    x = builder.add("axis", AddAxis(1), x)
    assert kernels(builder.model(builder.apply("tanh", x))) == ["chain", "chain"]


def test_runs_of_elementwise_functions_are_one_instruction() -> None:
    """A chain with single readers; one that an output reads ends it."""
    builder = ModelBuilder(x="1,2,T")
    a = builder.apply("tanh", builder.apply("relu", builder["x"]))
    b = builder.apply("sigmoid", builder.apply("abs", a))
    assert kernels(builder.model(b)) == ["chain"]
    assert kernels(builder.model(b, a)) == ["chain", "chain"]


def test_a_delay_moves_its_history_once() -> None:
    """The wire is written where the delay keeps it: one move at the end of a step, no copy."""
    builder = ModelBuilder(x="1,2,T")
    x = builder.apply("relu", builder["x"])
    typed = builder.model(builder.conv(builder.pad(x, (2, 0)), 3))
    assert kernels(typed) == ["chain", "product", "move"]


def test_live_arena_buffers_never_overlap_in_programs() -> None:
    """No instruction of a real program overwrites an element that a later one reads."""
    pairs = 0
    for seed in range(40):
        typed = random_model(np.random.default_rng(seed), 10)
        model = pulsify(typed)
        builder = lower_step(model.graph).builder
        size = builder.place_arena()
        live = [buffer for buffer in builder.arena if buffer.first <= buffer.last]
        for number, first in enumerate(live):
            assert first.offset >= 0
            assert first.offset + first.size <= size
            for other in live[:number]:
                if first.first <= other.last and other.first <= first.last:
                    pairs += 1
                    assert (
                        first.offset + first.size <= other.offset or other.offset + other.size <= first.offset
                    )
        for position, row in enumerate(builder.instructions):
            for value in row.operands:
                if value.buffer.region is Region.ARENA:
                    assert value.buffer.first <= position <= value.buffer.last
    assert pairs > 200


def test_operands_stay_inside_of_their_region() -> None:
    """Every element of every operand has its place in its buffer, and every buffer in its region."""
    for seed in range(25):
        program = NativeProgram(pulsify(random_model(np.random.default_rng(seed), 8)))
        sizes = {
            Region.WEIGHTS: program.weights.size,
            Region.STATE: program.initial.size,
            Region.ARENA: program.arena_bytes,
        }
        for row in program.instructions:
            for value in row.operands:
                if value.size == 0:
                    continue
                reach = value.offsets(range(len(value.shape)))
                first = (value.offset + int(reach.min())) * value.dtype.itemsize
                last = (value.offset + int(reach.max()) + 1) * value.dtype.itemsize
                assert first >= 0, (seed, row.node)
                assert last <= value.buffer.size, (seed, row.node)
                assert value.buffer.offset + value.buffer.size <= sizes[value.buffer.region]


@pytest.mark.parametrize(
    ("shape", "strides", "sizes", "columns"),
    [
        ((2, 3, 4), [(12, 4, 1), (12, 4, 1)], [24], [[1], [1]]),
        ((2, 3, 4), [(12, 4, 1), (6, 1, 3)], [2, 3, 4], [[12, 4, 1], [6, 1, 3]]),
        ((2, 3, 4), [(12, 4, 1), (24, 8, 1)], [6, 4], [[4, 1], [8, 1]]),
        ((1, 5, 1), [(9, 2, 7), (0, 1, 0)], [5], [[2], [1]]),
        ((1, 1), [(3, 1), (1, 1)], [1], [[0], [0]]),
    ],
)
def test_loops_are_merged_where_every_operand_allows_it(
    shape: tuple[int, ...], strides: list[tuple[int, ...]], sizes: list[int], columns: list[list[int]]
) -> None:
    """Axes of size one are removed."""
    loops = Loops.over(shape, strides, range(len(shape))).pad(1)
    assert loops == Loops(tuple(sizes), tuple(map(tuple, columns)))


@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "i32"])
def test_the_total_of_sums_has_the_type_of_the_sums(dtype: str) -> None:
    """The total has the type of its sums, which is that of the kernel."""
    builder = ModelBuilder(x=f"1,T,5,{dtype}")
    sums = builder.add("sums", CumSum(2), builder["x"])
    model = builder.model(sums, OutletId(sums.node, 1))
    x = np.arange(30).reshape(1, 6, 5).astype(model.inputs["x"].dtype)
    outputs = compile_model(pulsify(model, pulse=2)).spawn().step(x[:, :2])
    for name, expected in model.run(x).items():
        assert np.array_equal(outputs[name], expected[:, :2])


def test_bodies_in_unchecked_scans_are_not_checked_either() -> None:
    indices, table = np.zeros((5, 3, 2), np.int64), np.zeros((4, 6), np.float32)
    inner = body([node("Gather", "table x_in", "y_out")], "x_in", "y_out")
    outer = body([node("Scan", "x_in", "y_out", body=inner, num_scan_inputs=1)], "x_in", "y_out")
    nodes = [
        node("Neg", "x", "a"),
        node("Neg", "a", "b"),
        node("Scan", "b", "y", body=outer, num_scan_inputs=1),
    ]
    typed = load(onnx_model(nodes, {"x": indices}, {"table": table}, 17, None, "y")).analyse()
    graph = static_model(typed).graph
    scans = [scan.id for scan in graph.nodes if scan.op.name == "Scan"]
    assert len(scans) == 1
    assert len(lower_step(graph).builder.fault_counters) == 1
    assert not lower_step(graph, unchecked=scans).builder.fault_counters


def test_factors_of_a_product_of_tensors_join_its_instruction() -> None:
    """The instruction multiplies by the factors, unless something else reads a factor."""
    feeds = {"x": np.linspace(-1, 1, 5 * 6, dtype=np.float32).reshape(1, 5, 6)}
    constants = {
        "half": np.float32(0.5),
        "three": np.full((1, 1), 3, np.float32),
    }
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("Mul", "half x", "a"),
        node("Div", "t three", "b"),
        node("MatMul", "a b", "scores"),
        node("Mul", "scores half", "y"),
    ]
    typed = load(onnx_model(nodes, feeds, constants, stream={"x": 0})).analyse().declutter()
    assert kernels(typed, pulse=1) == ["matmul"]
    read_twice = [*nodes[:4], node("Add", "scores scores", "twice"), node("Add", "a x", "other")]
    typed = (
        load(onnx_model(read_twice, feeds, constants, outputs="twice other", stream={"x": 0}))
        .analyse()
        .declutter()
    )
    assert sorted(kernels(typed, pulse=1)) == ["chain", "chain", "chain", "matmul"]
