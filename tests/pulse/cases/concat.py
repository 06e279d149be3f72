"""Concatenated tensors."""

from collections.abc import Iterator

from tests.pulse.cases.build import Case, cases, floats, node


def concat() -> Iterator[Case]:
    """Joins of streams and constants."""
    x = floats("concat", 2, 3, 4)
    yield from cases(
        "Concat", [node("Concat", "x z", axis=1)], {"x": x, "z": x[:, :1]}, stream={"x": 2, "z": 2}
    )
    constants = {"w": floats("w", 2, 3, 2)}
    yield from cases(
        "Concat_ends", [node("Concat", "w x w", axis=-1)], {"x": x}, constants, (11, 17), {"x": 2}
    )
    yield from cases("Concat_one", [node("Concat", "x", axis=0)], {"x": x}, stream={"x": 2})


ALL = (concat,)
