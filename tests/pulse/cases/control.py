"""Branches and loops."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper

from tests.pulse.cases.build import Case, cases, floats, node

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def graph(
    nodes: Sequence[NodeProto], inputs: Sequence[tuple[str, int]], outputs: Sequence[tuple[str, int]]
) -> GraphProto:
    """A body; names with their types."""

    def value_infos(pairs: Sequence[tuple[str, int]]) -> list[Any]:
        shapes = [None if kind == F32 else [] for _, kind in pairs]
        return [
            helper.make_tensor_value_info(name, kind, shape) for (name, kind), shape in zip(pairs, shapes)
        ]

    return helper.make_graph(list(nodes), "body", value_infos(inputs), value_infos(outputs))


def branches(then: str, other: str, result: str = "r") -> dict[str, GraphProto]:
    """A branch of one operator on x, and another."""
    return {
        "then_branch": graph([node(then, "x", result)], [], [(result, F32)]),
        "else_branch": graph([node(other, "x", result)], [], [(result, F32)]),
    }


def if_() -> Iterator[Case]:
    """Constant conditions, conditions on shapes, branches of different rank, conditions that are data."""
    x = floats("x", 2, 5, 3)
    for value in (True, False):
        operator = node("If", "c", **branches("Relu", "Sigmoid"))
        yield from cases(f"If_{value}", [operator], {"x": x}, {"c": np.array(value)}, (11, 16), {"x": 1})
        side = {"x": x, "c": np.array([value])}
        yield from cases(f"If_data_{value}", [operator], side, None, (16,), {"x": 1})
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape first", "rows"),
        node("Equal", "rows two", "c"),
        node("If", "c", **branches("Relu", "Flatten")),
    ]
    constants = {"first": np.int64(0), "two": np.int64(2)}
    yield from cases("If_shape", nodes, {"x": x}, constants, (16,), {"x": 1})
    inner = node("If", "d", "r", **branches("Neg", "Abs", "deep"))
    outer = {
        "then_branch": graph([inner], [], [("r", F32)]),
        "else_branch": graph([node("Relu", "x", "r")], [], [("r", F32)]),
    }
    both = {"c": np.array(True), "d": np.array(False)}
    yield from cases("If_nested", [node("If", "c", **outer)], {"x": x}, both, (16,), {"x": 1})
    outside = {
        "then_branch": graph([node("Identity", "x", "r")], [], [("r", F32)]),
        "else_branch": graph([node("Identity", "x", "r")], [], [("r", F32)]),
    }
    yield from cases(
        "If_identity", [node("If", "c", **outside)], {"x": x}, {"c": np.array(True)}, (16,), {"x": 1}
    )


def iterations(gathered: bool = True) -> GraphProto:
    """``s = s * 0.5 + x * iteration``; gathers its hyperbolic tangent."""
    nodes = [
        node("Cast", "iteration", "number", to=F32),
        node("Mul", "x number", "scaled"),
        node("Mul", "s_in half", "halved"),
        node("Add", "halved scaled", "s_out"),
        node("Identity", "go_in", "go_out"),
        *([node("Tanh", "s_out", "row")] if gathered else []),
    ]
    outputs = [("go_out", BOOL), ("s_out", F32), *([("row", F32)] if gathered else [])]
    return graph(nodes, [("iteration", I64), ("go_in", BOOL), ("s_in", F32)], outputs)


def loop() -> Iterator[Case]:
    """Constant trip counts, conditions on the iteration, states that grow, no iteration, data that decides."""
    x, s = floats("x", 2, 5), floats("s", 2, 5)
    half = {"half": np.float32(0.5)}
    operator = node("Loop", "n go s", "last y", body=iterations())
    for count in (1, 3):
        constants = {"n": np.int64(count), "go": np.array(True), **half}
        both = {"x": x, "s": s}
        yield from cases(
            f"Loop_{count}", [operator], both, constants, (11, 16, 21), {"x": 1, "s": 1}, "last y"
        )
    endless = node("Loop", "n _ s", "last y", body=iterations())
    yield from cases(
        "Loop_no_condition", [endless], {"x": x}, {"n": np.int64(2), "s": s, **half}, (16,), None, "last y"
    )
    early = graph(
        [
            node("Less", "iteration limit", "go_out"),
            node("Concat", "s_in x", "s_out", axis=0),
        ],
        [("iteration", I64), ("go_in", BOOL), ("s_in", F32)],
        [("go_out", BOOL), ("s_out", F32)],
    )
    constants = {"n": np.int64(9), "go": np.array(True), "limit": np.int64(2)}
    yield from cases(
        "Loop_grows", [node("Loop", "n go x", "y", body=early)], {"x": x}, constants, (16,), {"x": 1}
    )
    none = {"n": np.int64(0), "go": np.array(True), **half}
    quiet = node("Loop", "n go s", "y", body=iterations(False))
    yield from cases("Loop_none", [quiet], {"x": x, "s": s}, none, (16,))
    data = {"n": np.array(3), "x": x, "s": s}
    yield from cases("Loop_data", [quiet], data, {"go": np.array(True), **half}, (16,), {"x": 1, "s": 1})
    doubled = graph(
        [
            node("Add", "s_in s_in", "s_out"),
            node("ReduceMax", "s_out", "most", keepdims=0),
            node("Less", "most ten", "go_out"),
        ],
        [("iteration", I64), ("go_in", BOOL), ("s_in", F32)],
        [("go_out", BOOL), ("s_out", F32)],
    )
    operator = node("Loop", "_ go x", "y", body=doubled)
    yield from cases(
        "Loop_until", [operator], {"x": np.abs(x) + 0.1}, {"go": np.array(True), "ten": np.float32(10)}, (16,)
    )


ALL = (if_, loop)
