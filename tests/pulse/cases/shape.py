"""Changes of shape."""

from collections.abc import Iterator, Sequence

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, ints, node


def reshape() -> Iterator[Case]:
    """Targets with copies and an open dim; time alone, merged and split."""
    x = floats("reshape", 2, 6, 4)
    targets: Sequence[tuple[int, ...]] = [
        (0, -1),
        (2, -1, 2, 2),
        (-1, 4),
        (0, 0, 2, 2),
        (-1,),
        (2, 3, -1, 4),
        (0, -1, 8),
    ]
    for target in targets:
        constants = {"s": ints(*target)}
        yield from cases(
            f"Reshape_{target}", [node("Reshape", "x s")], {"x": x}, constants, (7, 17), {"x": 1}
        )
    for axis in (0, 1, 2, 3, -1):
        yield from cases(
            f"Flatten_{axis}", [node("Flatten", "x", axis=axis)], {"x": x}, opsets=(11, 13), stream={"x": 1}
        )
    empty = np.zeros((0, 4), np.float32)
    operator = node("Reshape", "x s", allowzero=1)
    yield from cases("Reshape_allowzero", [operator], {"x": empty}, {"s": ints(4, 0)})


def transpose() -> Iterator[Case]:
    """Orders of axes; axes of size 1 added and removed."""
    x = floats("transpose", 2, 5, 1, 3)
    yield from cases("Transpose", [node("Transpose", "x")], {"x": x}, stream={"x": 1})
    for perm in ((1, 0, 2, 3), (3, 1, 0, 2), (0, 2, 1, 3)):
        yield from cases(f"Transpose_{perm}", [node("Transpose", "x", perm=perm)], {"x": x}, stream={"x": 1})
    for axes in ((0,), (1, 3), (-1,), (5, 0)):
        operator = node("Unsqueeze", "x", axes=axes)
        yield from cases(f"Unsqueeze_{axes}", [operator], {"x": x}, opsets=(7, 11), stream={"x": 1})
        yield from cases(
            f"Unsqueeze_{axes}", [node("Unsqueeze", "x a")], {"x": x}, {"a": ints(*axes)}, (13,), {"x": 1}
        )
    narrow = x[:1]
    yield from cases("Squeeze", [node("Squeeze", "x")], {"x": narrow}, opsets=(11, 13), stream={"x": 1})
    yield from cases(
        "Squeeze_axes", [node("Squeeze", "x", axes=[0, 2])], {"x": narrow}, opsets=(11,), stream={"x": 1}
    )
    yield from cases(
        "Squeeze_axes", [node("Squeeze", "x a")], {"x": narrow}, {"a": ints(-2, 0)}, (13,), {"x": 1}
    )


def expand() -> Iterator[Case]:
    """Broadcasts and repeats, constant and by the length of another tensor."""
    x = floats("expand", 3, 1)
    for target in ((3, 4), (2, 1, 4), (1,), (3, 1)):
        yield from cases(
            f"Expand_{target}", [node("Expand", "x s")], {"x": x}, {"s": ints(*target)}, (8, 13), {"x": 0}
        )
    like = [node("Shape", "z", "shape"), node("Expand", "x shape")]
    yield from cases("Expand_like", like, {"z": floats("z", 2, 3, 5)}, {"x": x}, stream={"z": 2})
    for repeats in ((1, 1), (1, 3), (2, 2)):
        yield from cases(
            f"Tile_{repeats}", [node("Tile", "x r")], {"x": x}, {"r": ints(*repeats)}, (7, 13), {"x": 0}
        )


ALL = (reshape, transpose, expand)
