"""Slices and splits."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, ints, node


def slices() -> Iterator[Case]:
    """Random bounds, negative ones, those beyond the ends, and steps of both signs."""
    x = floats("slice", 3, 12, 5)
    far = 2**63 - 1
    bounds = [
        (0, far, 1),
        (2, 9, 1),
        (-5, far, 1),
        (0, -3, 1),
        (-7, -2, 1),
        (3, 3, 1),
        (1, 100, 3),
        (0, far, 2),
        (20, 30, 1),
        (-100, 4, 1),
        (11, 0, -1),
        (-1, -far - 1, -1),
        (8, 2, -2),
        (100, -100, -3),
        (-2, -9, -2),
    ]
    for start, end, step in bounds:
        constants = {"b": ints(start), "e": ints(end), "a": ints(1), "s": ints(step)}
        operator = node("Slice", "x b e a s")
        yield from cases(f"Slice_{start}_{end}_{step}", [operator], {"x": x}, constants, (10, 17), {"x": 1})
        if step == 1:
            old = node("Slice", "x", starts=[start], ends=[end], axes=[1])
            yield from cases(f"Slice_{start}_{end}", [old], {"x": x}, opsets=(9,), stream={"x": 1})
    two = {"b": ints(1, 1), "e": ints(2, -1), "a": ints(-1, 0)}
    yield from cases("Slice_two_axes", [node("Slice", "x b e a")], {"x": x}, two, stream={"x": 1})
    yield from cases("Slice_no_axes", [node("Slice", "x b e")], {"x": x}, two, stream={"x": 1})
    whole = [
        node("Shape", "x", "shape"),
        node("Gather", "shape one", "length"),
        node("Slice", "table zero length"),
    ]
    table = {"table": floats("table", 20, 3), "one": ints(1), "zero": ints(0)}
    yield from cases("Slice_table", whole, {"x": x}, table, stream={"x": 1})


def split() -> Iterator[Case]:
    """Equal parts, given parts, and a number of parts that does not divide."""
    x = floats("split", 2, 6, 8)
    equal = node("Split", "x", "y z", axis=1)
    yield from cases("Split_equal", [equal], {"x": x}, opsets=(7, 13), stream={"x": 2}, outputs="z y")
    operator = node("Split", "x", "y z", axis=1, split=[1, 5])
    yield from cases("Split_sizes", [operator], {"x": x}, opsets=(11,), stream={"x": 2}, outputs="y z")
    sized = node("Split", "x s", "y z w", axis=-2)
    yield from cases("Split_sizes", [sized], {"x": x}, {"s": ints(1, 3, 2)}, (13, 18), {"x": 2}, "y z w")
    count = node("Split", "x", "y z w", axis=2, num_outputs=3)
    yield from cases("Split_count", [count], {"x": x}, opsets=(18,), stream={"x": 1}, outputs="y z w")
    yield from cases(
        "Split_time", [node("Split", "x", "y z", axis=1)], {"x": x}, stream={"x": 1}, outputs="y z"
    )


def reverse_sequence() -> Iterator[Case]:
    """Sequences whose first n entries are reversed."""
    x = floats("x", 4, 6, 5)
    for batch in (0, 1):
        operator = node("ReverseSequence", "x n", batch_axis=batch, time_axis=1 - batch)
        lengths = np.array([1, 3, 4, 2, 4, 1])[: x.shape[batch]]
        yield from cases(f"ReverseSequence_{batch}", [operator], {"x": x}, {"n": lengths}, (10,), {"x": 2})


def first_frame_met() -> Iterator[Case]:
    """A function of the first frame meets all frames."""
    x = floats("first frame met", 1, 2, 12)
    ends = {"b": ints(0), "e": ints(1), "a": ints(2), "zero": np.int64(0), "shape": ints(1, 2, 1)}
    first = node("Slice", "x b e a", "first")
    yield from cases(
        "Slice_first_subtracted", [first, node("Sub", "x first")], {"x": x}, ends, stream={"x": 2}
    )
    scaled = [first, node("Abs", "first", "level"), node("Add", "level first", "two"), node("Mul", "two x")]
    yield from cases("Slice_first_scales", scaled, {"x": x}, ends, stream={"x": 2})
    nodes = [node("Gather", "x zero", "g", axis=2), node("Unsqueeze", "g a", "first"), node("Sub", "first x")]
    yield from cases("Gather_first_subtracted", nodes, {"x": x}, ends, stream={"x": 2})
    wide = {**ends, "wide": np.array([1, 2, 3])}
    repeated = [first, node("Expand", "first wide", "front"), node("Concat", "front x", axis=2)]
    yield from cases("Slice_first_repeated_in_front", repeated, {"x": x}, wide, stream={"x": 2})


ALL = (first_frame_met, slices, split, reverse_sequence)
