"""Operations with the wrong arguments are accepted or refused by name and line; nothing else comes out."""

import pytest

import pulse
from pulse.nnef.operators import families as families
from pulse.nnef.registry import READERS
from tests.pairs import pairs
from tests.pulse.nnef.folders import graph, load_text

ARGUMENTS = (
    *("", "x", "x, x", "x, x, x", "[x]", "[x, x]", "[]", "x, 1", "x, 0", "x, -7", "x, [1]", "x, [9]"),
    *("x, [1], [2]", "x, [(0, 0)]", "x, 1.5", "x, 'a'", "x, true", "1", "1.0", "c", "c, c", "x, c", "c, x"),
    *("x, [1], [1], [1]", "x, 1, 1", "x, x, [1]", "x, 99999999999"),
)
"""The arguments of an operation: x is an input, c a constant."""
SHAPES = ("[]", "[1, 3, S]")
HEAD = "".join(
    f"extension tract_{name};\n" for name in ("registry tract_core", "registry tract_onnx", "symbol S")
)


@pytest.mark.parametrize("operation", sorted(READERS))
def test_an_operation_with_wrong_arguments_is_read_or_refused(operation: str, default_suite: bool) -> None:
    refused = 0
    for arguments, shape in pairs(ARGUMENTS, SHAPES, half=default_suite):
        body = f"x = external(shape = {shape});\nc = [1.0, 2.0];\ny = {operation}({arguments});"
        try:
            load_text(graph(body, outputs="y", head=HEAD))
        except pulse.PulseError:
            refused += 1
    assert refused
