"""Shuffles between channels and positions."""

from collections.abc import Iterator

from tests.pulse.cases.build import Case, cases, floats, node


def shuffles() -> Iterator[Case]:
    """Depth to space in both orders, and back."""
    x = floats("shuffles", 2, 12, 3, 4)
    for mode in ("DCR", "CRD"):
        operator = node("DepthToSpace", "x", blocksize=2, mode=mode)
        for axis in (2, 3):
            yield from cases(f"DepthToSpace_{mode}_{axis}", [operator], {"x": x}, None, (11, 13), {"x": axis})
    plain = node("DepthToSpace", "x", blocksize=2)
    yield from cases("DepthToSpace", [plain], {"x": x}, opsets=(10,), stream={"x": 3})
    back = node("SpaceToDepth", "x", blocksize=2)
    image = floats("image", 2, 3, 4, 6)
    yield from cases("SpaceToDepth", [back], {"x": image}, opsets=(7, 13), stream={"x": 3})


ALL = (shuffles,)
