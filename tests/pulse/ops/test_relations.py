"""Statements of ops about the stream axis, proved on chunks of a stream."""

from collections.abc import Sequence

import numpy as np
import pytest

from pulse.dim import SymbolScope, TDim
from pulse.facts import Array, TypedFact
from pulse.ops.gather import Gather
from pulse.ops.matmul import MatMul
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.op import Op, Pointwise, Positional, Relation, Whole, Window
from pulse.ops.reduce import ArgReduce, Reduce
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose
from pulse.ops.slice_frames import Frames

SCOPE = SymbolScope()
T = SCOPE.symbol("T")
SCOPE.assume("T >= 0")
FRAMES = 12
ENV = {T: FRAMES}


def shape(*dims: str | int) -> tuple[TDim, ...]:
    return tuple(SCOPE.parse(str(dim)) for dim in dims)


def facts_of(shapes: Sequence[Sequence[str | int]]) -> list[TypedFact]:
    dtype = np.dtype(np.float32)
    return [TypedFact(dtype, shape(*dims)) for dims in shapes]


def arrays_of(facts: Sequence[TypedFact]) -> list[Array]:
    random = np.random.default_rng(0)
    return [
        random.standard_normal([dim.eval(ENV) for dim in fact.shape]).astype(fact.dtype) for fact in facts
    ]


def cut(value: Array, axis: int | None, start: int, end: int) -> Array:
    return value if axis is None else np.take(value, range(start, end), axis)


def assert_pointwise(
    op: Op, relation: Pointwise, arrays: Sequence[Array], axes: Sequence[int | None], whole: Array
) -> None:
    for start, end in ((0, 5), (5, 6), (6, FRAMES)):
        part = op if relation.make_op is None else relation.make_op(end - start)
        pieces = [cut(value, axis, start, end) for value, axis in zip(arrays, axes)]
        (output,) = part.eval(pieces, {})
        np.testing.assert_allclose(output, cut(whole, relation.axes[0], start, end), rtol=1e-5)
        (fact,) = part.facts([TypedFact.of(piece) for piece in pieces])
        assert output.shape == tuple(int(dim) for dim in fact.shape)


def assert_window(relation: Window, x: Array, axis: int | None, whole: Array) -> None:
    assert relation.op is not None
    for groups in (1, 2):
        frames = (groups - 1) * relation.stride + relation.span
        (output,) = relation.op.eval([cut(x, axis, 0, frames)], {})
        np.testing.assert_array_equal(output, cut(whole, relation.axis, 0, groups * relation.up))


def assert_relation(
    op: Op, facts: Sequence[TypedFact], arrays: Sequence[Array], axes: Sequence[int | None]
) -> Relation:
    """The relation, after it was tried on chunks."""
    relation = op.relation(facts, axes)
    (whole,) = op.eval(arrays, ENV)
    assert whole.shape == tuple(dim.eval(ENV) for dim in op.facts(facts)[0].shape)
    if isinstance(relation, Pointwise):
        assert_pointwise(op, relation, arrays, axes, whole)
    elif isinstance(relation, Window):
        assert_window(relation, arrays[0], axes[0], whole)
    elif isinstance(relation, Positional):
        (output,) = relation.make_op(3, 4).eval(arrays, {})
        np.testing.assert_array_equal(output, cut(whole, relation.axis, 3, 7))
    return relation


POINTWISE: list[tuple[Op, list[list[str | int]], list[int | None], int]] = [
    (Transpose((2, 0, 1)), [[1, 80, "T"]], [2], 0),
    (AddAxis(1), [[1, "T", 3]], [1], 2),
    (AddAxis(3), [[1, "T", 3]], [1], 1),
    (RemoveAxis(0), [[1, "T", 3]], [1], 0),
    (RemoveAxis(2), [[4, "T", 1]], [1], 1),
    (Reshape(shape(1, "T", 12)), [[1, "T", 3, 4]], [1], 1),
    (Reshape(shape(1, "T", 3, -1)), [[1, "T", 12]], [1], 1),
    (Reshape(shape("T", 12)), [[1, "T", 1, 3, 4]], [1], 0),
    (Reshape(shape(6, 1, "T")), [[2, 3, "T", 1]], [2], 2),
    (Reshape(shape(3, 2, "T", 4)), [[6, "T", 4]], [1], 2),
    (Reshape(shape(1, "2*T", 4)), [[1, "2*T", 2, 2]], [1], 1),
    (Expand(shape(2, "T", 5)), [["T", 1]], [0], 1),
    (Tile(shape(1, 2, 3)), [["T", 3, 1]], [0], 0),
    (MatMul(), [[1, "T", 4], [4, 5]], [1, None], 1),
    (MatMul(), [["T", 4], [4]], [0, None], 0),
    (MatMul(), [["T", 4], [2, 4, 5]], [0, None], 1),
    (MatMul(), [[3, 4], [4, "T"]], [None, 1], 1),
    (MatMul(), [[4], [4, "T"]], [None, 1], 0),
    (MatMul(), [[4], [2, "T", 4, 3]], [None, 1], 1),
    (MatMul(), [["T", 3, 4], ["T", 4, 5]], [0, 0], 0),
    (MatMul(), [[2, "T", 3, 4], ["T", 4, 5]], [1, 0], 1),
    (MatMul(), [[1, "T", 3, 4], [2, 1, 4, 5]], [1, None], 1),
    (Reduce("mean", (1,), False), [[1, 80, "T"]], [2], 1),
    (Reduce("l2", (1,), True), [[1, 80, "T"]], [2], 2),
    (ArgReduce("max", 0, False), [[7, "T", 2]], [1], 0),
    (Softmax(2), [[1, "T", 4]], [1], 1),
    (LayerNorm(2), [[1, "T", 4], [4], [4]], [1, None, None], 1),
]


@pytest.mark.parametrize(("op", "shapes", "axes", "axis"), POINTWISE, ids=lambda value: str(value)[:60])
def test_pointwise_relations_keep_their_axis(
    op: Op, shapes: list[list[str | int]], axes: list[int | None], axis: int
) -> None:
    facts = facts_of(shapes)
    relation = assert_relation(op, facts, arrays_of(facts), axes)
    assert isinstance(relation, Pointwise)
    assert relation.axes == (axis,)


WINDOWS: list[tuple[Reshape, list[str | int], int, tuple[int, int, int, int]]] = [
    (Reshape(shape(1, "3*T")), [1, "T", 3], 1, (1, 1, 1, 3)),
    (Reshape(shape("6*T", 1)), ["T", 2, 3], 0, (0, 1, 1, 6)),
    (Reshape(shape(2, "T/2", 2, 5)), [2, "T", 5], 1, (1, 2, 2, 1)),
    (Reshape(shape("T/3", 3)), ["T"], 0, (0, 3, 3, 1)),
    (Reshape(shape(1, "2*T", 3)), [1, "T", 6], 1, (1, 1, 1, 2)),
    (Reshape(shape("(2*T)/3", 3)), ["T", 2], 0, (0, 3, 3, 2)),
]


@pytest.mark.parametrize(("op", "dims", "axis", "expected"), WINDOWS, ids=lambda value: str(value)[:60])
def test_reshape_merges_and_splits(
    op: Reshape, dims: list[str | int], axis: int, expected: tuple[int, int, int, int]
) -> None:
    facts = facts_of([dims])
    relation = assert_relation(op, facts, arrays_of(facts), [axis])
    assert isinstance(relation, Window)
    assert (relation.axis, relation.span, relation.stride, relation.up) == expected


FRAMES_OF: list[tuple[list[str | int], int]] = [([1, "T"], 1), (["T", 2], 0), ([2, "T", 3], 1)]


@pytest.mark.parametrize(("dims", "axis"), FRAMES_OF, ids=str)
@pytest.mark.parametrize(("size", "hop"), [(4, 2), (3, 3), (2, 3), (5, 1)])
def test_overlapping_frames_are_a_window_with_a_stride(
    dims: list[str | int], axis: int, size: int, hop: int
) -> None:
    op = Frames(axis, size, hop)
    facts = facts_of([dims])
    (x,) = arrays_of(facts)
    relation = assert_relation(op, facts, [x], [axis])
    assert isinstance(relation, Window)
    assert (relation.axis, relation.span, relation.stride, relation.up) == (axis, size, hop, 1)
    (y,) = op.eval([x], {})
    for j in range(y.shape[axis]):
        np.testing.assert_array_equal(np.take(y, j, axis), cut(x, axis, j * hop, j * hop + size))


def test_frames_of_another_axis_are_pointwise() -> None:
    facts = facts_of([["T", 9, 2]])
    relation = assert_relation(Frames(1, 4, 3), facts, arrays_of(facts), [0])
    assert relation == Pointwise((0,))
    facts = facts_of([[9, "T"]])
    assert assert_relation(Frames(0, 4, 3), facts, arrays_of(facts), [1]) == Pointwise((2,))


WHOLE: list[tuple[Op, list[list[str | int]], list[int | None]]] = [
    (Reshape(shape("3*T")), [[3, "T"]], [1]),
    (Reshape(shape(3, "T/3")), [["T"]], [0]),
    (Reshape(shape("T", 3)), [[3, "T"]], [1]),
    (Tile(shape(1, 2)), [[3, "T"]], [1]),
    (MatMul(), [["T", 4], [4, "T"]], [0, 1]),
    (MatMul(), [[3, "T"], ["T", 4]], [1, 0]),
    (MatMul(), [["T"], ["T", 4]], [0, 0]),
    (MatMul(), [["T"], ["T"]], [0, 0]),
    (Reduce("mean", (1, 2), True), [[1, 80, "T"]], [2]),
    (ArgReduce("min", 2, True), [[1, 80, "T"]], [2]),
    (Softmax(1), [[1, "T"]], [1]),
    (LayerNorm(1), [[1, "T", 4], ["T", 4]], [1, 0]),
    (LayerNorm(1), [[1, "T", 4], [4]], [1, None]),
]


@pytest.mark.parametrize(("op", "shapes", "axes"), WHOLE, ids=lambda value: str(value)[:60])
def test_operators_that_need_the_whole_stream_say_why(
    op: Op, shapes: list[list[str | int]], axes: list[int | None]
) -> None:
    relation = op.relation(facts_of(shapes), axes)
    assert isinstance(relation, Whole)
    assert relation.reason
    assert relation.advice


def test_matmul_refuses_a_constant_batch_of_the_streams_length() -> None:
    facts = facts_of([["T", 3, 4], [12, 4, 5]])
    assert isinstance(MatMul().relation(facts, [0, None]), Whole)


@pytest.mark.parametrize("dims", [(4,), (), (2, 3)])
@pytest.mark.parametrize("axis", [2, 0])
def test_gather_by_constants_is_pointwise_in_other_axes(dims: tuple[int, ...], axis: int) -> None:
    indices = np.random.default_rng(1).integers(-5, 5, dims)
    (data,) = facts_of([[5, "T", 5]])
    facts = [data, TypedFact.of(indices)]
    relation = assert_relation(Gather(axis), facts, [*arrays_of([data]), indices], [1, None])
    assert relation == Pointwise((1 if axis == 2 else len(dims),))


def test_gather_by_streaming_indices_is_pointwise() -> None:
    table = TypedFact.of(np.arange(30.0).reshape(2, 5, 3))
    ids = np.random.default_rng(2).integers(0, 5, (2, FRAMES))
    facts = [table, TypedFact(ids.dtype, shape(2, "T"))]
    assert table.value is not None
    assert assert_relation(Gather(1), facts, [table.value, ids], [None, 1]) == Pointwise((2,))


def test_gather_along_the_stream_needs_the_whole_stream() -> None:
    facts = [*facts_of([["T", 3]]), TypedFact.of(np.array([0, 1]))]
    assert isinstance(Gather(0).relation(facts, [0, None]), Whole)


@pytest.mark.parametrize(
    ("op", "dims", "axis"),
    [
        (Expand(shape(2, "T")), [2, 1], 1),
        (Expand(shape("T", 3)), [3], 0),
        (Expand(shape("T+1", 3)), [], 0),
        (Tile(shape(1, "T")), [2, 1], 1),
    ],
    ids=str,
)
def test_a_stream_that_comes_from_the_target_alone_is_positional(
    op: Op, dims: list[str | int], axis: int
) -> None:
    facts = facts_of([dims])
    relation = assert_relation(op, facts, arrays_of(facts), [None])
    assert isinstance(relation, Positional)
    assert relation.axis == axis


def test_a_repeated_table_is_not_positional() -> None:
    assert isinstance(Tile(shape("T", 1)).relation(facts_of([[3, 2]]), [None]), Whole)
