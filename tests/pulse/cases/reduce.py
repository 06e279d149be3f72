"""Reductions."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node

REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"]


def reduce() -> Iterator[Case]:
    """Every kind, axes as attribute and as input, kept and removed."""
    x = np.abs(floats("reduce", 2, 3, 4)) + 0.1
    for kind in REDUCTIONS:
        op = f"Reduce{kind}"
        old = (11,) if kind == "Sum" else (11, 13)
        new = (13, 18) if kind == "Sum" else (18,)
        for axes in ([1], [-1, 0], [0, 1, 2]):
            for keep in (0, 1):
                name = f"{op}_{axes}_{keep}"
                yield from cases(
                    name, [node(op, "x", axes=axes, keepdims=keep)], {"x": x}, opsets=old, stream={"x": 2}
                )
                constants = {"a": np.array(axes, dtype=np.int64)}
                yield from cases(name, [node(op, "x a", keepdims=keep)], {"x": x}, constants, new, {"x": 2})
        yield from cases(f"{op}_all", [node(op, "x")], {"x": x}, opsets=(11, 18), stream={"x": 2})
    for kind in REDUCTIONS:
        operator = node(f"Reduce{kind}", "x", noop_with_empty_axes=1)
        yield from cases(f"Reduce{kind}_noop", [operator], {"x": x}, opsets=(18,), stream={"x": 2})


def arg_reduce() -> Iterator[Case]:
    """The first or the last of equal entries."""
    x = np.round(floats("arg", 3, 5, 4))
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1, -1):
            for keep in (0, 1):
                operator = node(op, "x", axis=axis, keepdims=keep)
                yield from cases(
                    f"{op}_{axis}_{keep}", [operator], {"x": x}, opsets=(11, 13), stream={"x": 1}
                )
        last = node(op, "x", axis=1, select_last_index=1)
        yield from cases(f"{op}_last", [last], {"x": x}, opsets=(12, 13), stream={"x": 1})


ALL = (reduce, arg_reduce)
