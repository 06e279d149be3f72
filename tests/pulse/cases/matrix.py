"""Matrix products, reductions and normalisations."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node


def matmul() -> Iterator[Case]:
    """Every mix of ranks; Gemm with all of its attributes."""
    shapes = [
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 5)),
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (4,)),
        ((3, 4), (2, 4, 5)),
        ((6, 1, 3, 4), (2, 4, 5)),
        ((4,), (2, 4, 5)),
    ]
    for left, right in shapes:
        a, b = floats("a", *left), floats("b", *right)
        stream = {"x": len(left) - 2} if len(left) > 1 else None
        yield from cases(
            f"MatMul_{left}_{right}", [node("MatMul", "x w")], {"x": a}, {"w": b}, (7, 13), stream
        )
    both = {"x": floats("a", 5, 3, 4), "z": floats("b", 5, 4, 2)}
    yield from cases("MatMul_batch", [node("MatMul", "x z")], both, stream={"x": 0, "z": 0})
    product = {"x": floats("a", 2, 7, 4), "z": floats("b", 2, 4, 7)}
    yield from cases("MatMul_scores", [node("MatMul", "x z")], product, stream={"x": 1, "z": 2})
    for trans_a in (0, 1):
        for trans_b in (0, 1):
            a = floats("a", 5, 3) if trans_a else floats("a", 3, 5)
            constants = {"w": floats("w", 4, 5) if trans_b else floats("w", 5, 4), "c": floats("c", 4)}
            made = node("Gemm", "x w c", transA=trans_a, transB=trans_b, alpha=0.5, beta=2.0)
            stream = {"x": trans_a}
            yield from cases(f"Gemm_{trans_a}{trans_b}", [made], {"x": a}, constants, (7, 9, 13), stream)
    weights = {"w": floats("w", 5, 4)}
    yield from cases(
        "Gemm_no_bias", [node("Gemm", "x w")], {"x": floats("a", 3, 5)}, weights, (11, 13), {"x": 0}
    )


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
        made = node(f"Reduce{kind}", "x", noop_with_empty_axes=1)
        yield from cases(f"Reduce{kind}_noop", [made], {"x": x}, opsets=(18,), stream={"x": 2})


def arg_reduce() -> Iterator[Case]:
    """The first or the last of equal entries."""
    x = np.round(floats("arg", 3, 5, 4))
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1, -1):
            for keep in (0, 1):
                made = node(op, "x", axis=axis, keepdims=keep)
                yield from cases(f"{op}_{axis}_{keep}", [made], {"x": x}, opsets=(11, 13), stream={"x": 1})
        last = node(op, "x", axis=1, select_last_index=1)
        yield from cases(f"{op}_last", [last], {"x": x}, opsets=(12, 13), stream={"x": 1})


def softmax() -> Iterator[Case]:
    """One axis, or before opset 13 all from one on."""
    x = floats("softmax", 2, 3, 4, 5)
    for op in ("Softmax", "LogSoftmax"):
        yield from cases(op, [node(op, "x")], {"x": x}, opsets=(11, 13), stream={"x": 1})
        for axis in (0, 1, 2, -1):
            made = node(op, "x", axis=axis)
            yield from cases(f"{op}_{axis}", [made], {"x": x}, opsets=(11, 13), stream={"x": 1})


def norm() -> Iterator[Case]:
    """Layer and batch normalisation."""
    x = floats("norm", 2, 3, 4, 5)
    for axis in (-1, 2, 1):
        shape = x.shape[axis:]
        constants = {"g": floats("g", *shape), "b": floats("b", *shape)}
        made = node("LayerNormalization", "x g b", axis=axis, epsilon=1e-3)
        yield from cases(f"LayerNormalization_{axis}", [made], {"x": x}, constants, (17,), {"x": 0})
    scale = {"g": floats("g", 5)}
    yield from cases(
        "LayerNormalization_no_bias", [node("LayerNormalization", "x g")], {"x": x}, scale, stream={"x": 2}
    )
    three = node("LayerNormalization", "x g b", "y mean inverse", axis=-1)
    both = {"g": floats("g", 5), "b": floats("b", 5)}
    yield from cases(
        "LayerNormalization_statistics", [three], {"x": x}, both, (17,), {"x": 2}, outputs="y mean inverse"
    )
    channels = {
        "g": floats("g", 3),
        "b": floats("b", 3),
        "m": floats("m", 3),
        "v": np.abs(floats("v", 3)) + 0.1,
    }
    made = node("BatchNormalization", "x g b m v", epsilon=1e-3)
    yield from cases("BatchNormalization", [made], {"x": x}, channels, (7, 9, 14, 15), {"x": 2})
    made = node("BatchNormalization", "x g b m v", "y mean variance", training_mode=1, momentum=0.7)
    names = "y mean variance"
    yield from cases("BatchNormalization_training", [made], {"x": x}, channels, (14,), {"x": 2}, names)
    fed = {"x": x[..., 0], **channels}
    yield from cases("BatchNormalization_fed", [made], fed, None, (15,), {"x": 2})


ALL = (matmul, reduce, arg_reduce, softmax, norm)
