"""Normalisations."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node


def softmax() -> Iterator[Case]:
    """One axis, or before opset 13 all from one on."""
    x = floats("softmax", 2, 3, 4, 5)
    for op in ("Softmax", "LogSoftmax"):
        yield from cases(op, [node(op, "x")], {"x": x}, opsets=(11, 13), stream={"x": 1})
        for axis in (0, 1, 2, -1):
            operator = node(op, "x", axis=axis)
            yield from cases(f"{op}_{axis}", [operator], {"x": x}, opsets=(11, 13), stream={"x": 1})


def norm() -> Iterator[Case]:
    """Layer and batch normalisation."""
    x = floats("norm", 2, 3, 4, 5)
    for axis in (-1, 2, 1):
        shape = x.shape[axis:]
        constants = {"g": floats("g", *shape), "b": floats("b", *shape)}
        operator = node("LayerNormalization", "x g b", axis=axis, epsilon=1e-3)
        yield from cases(f"LayerNormalization_{axis}", [operator], {"x": x}, constants, (17,), {"x": 0})
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
    operator = node("BatchNormalization", "x g b m v", epsilon=1e-3)
    yield from cases("BatchNormalization", [operator], {"x": x}, channels, (7, 9, 14, 15), {"x": 2})
    operator = node("BatchNormalization", "x g b m v", "y mean variance", training_mode=1, momentum=0.7)
    names = "y mean variance"
    yield from cases("BatchNormalization_training", [operator], {"x": x}, channels, (14,), {"x": 2}, names)
    fed = {"x": x[..., 0], **channels}
    yield from cases("BatchNormalization_fed", [operator], fed, None, (15,), {"x": 2})


def norms() -> Iterator[Case]:
    """Statistics of channels, groups, axes, and of all at once."""
    x = floats("norms", 2, 6, 4, 3)
    affine = {"g": floats("g", 6), "b": floats("b", 6)}
    groups = {"g": floats("g", 3), "b": floats("b", 3)}
    instance = node("InstanceNormalization", "x g b", epsilon=1e-3)
    yield from cases("InstanceNormalization", [instance], {"x": x}, affine, (7, 17, 22), {"x": 0})
    yield from cases("InstanceNormalization_3", [instance], {"x": x[..., 0]}, affine, (17,), {"x": 2})
    group = node("GroupNormalization", "x g b", num_groups=3, epsilon=1e-3)
    yield from cases("GroupNormalization", [group], {"x": x}, groups, (18,), {"x": 0})
    yield from cases("GroupNormalization", [group], {"x": x}, affine, (21,), {"x": 0})
    yield from cases("GroupNormalization_3", [group], {"x": x[..., 0]}, affine, (21,), {"x": 2})
    zeros = x.copy()
    zeros[0, :, 0, 0] = 0
    for p in (1, 2):
        for axis in (1, -1):
            operator = node("LpNormalization", "x", p=p, axis=axis)
            yield from cases(f"LpNormalization_{p}_{axis}", [operator], {"x": zeros}, None, (13,), {"x": 2})
    for axes in ([1], [0, 2, 3], [1, 3]):
        operator = node("MeanVarianceNormalization", "x", axes=axes)
        stream = {"x": 2 if 2 not in axes else 1}
        yield from cases(f"MeanVarianceNormalization_{axes}", [operator], {"x": x}, None, (9, 13), stream)
    plain = node("MeanVarianceNormalization", "x")
    yield from cases("MeanVarianceNormalization", [plain], {"x": x}, None, (13,), {"x": 1})
    for axis in (-1, 2):
        operator = node("RMSNormalization", "x g", axis=axis, epsilon=1e-3)
        scale = {"g": floats("g", *x.shape[axis:])}
        yield from cases(f"RMSNormalization_{axis}", [operator], {"x": x}, scale, (23,), {"x": 1})
        simplified = node("SimplifiedLayerNormalization", "x g", axis=axis, epsilon=1e-3)
        yield from cases(
            f"SimplifiedLayerNormalization_{axis}", [simplified], {"x": x}, scale, (17,), {"x": 1}
        )


def lrn() -> Iterator[Case]:
    """Over neighbouring channels."""
    x = floats("x", 2, 6, 5)
    for size in (1, 3, 5):
        operator = node("LRN", "x", size=size, alpha=0.3, beta=0.6, bias=1.5)
        yield from cases(f"LRN_{size}", [operator], {"x": x[..., None]}, None, (13,), {"x": 2})


ALL = (softmax, norm, norms, lrn)
