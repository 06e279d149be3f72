"""Operators with the wrong number, rank or type of inputs are accepted or refused by name; nothing else comes out."""

from collections.abc import Callable

import pytest

import pulse
from pulse.errors import LoadError
from pulse.tflite.operators import families as families
from pulse.tflite.registry import TRANSLATORS
from tests.pairs import pairs
from tests.pulse.tflite.builder import SubgraphBuilder, file_bytes

INPUTS = (
    "",
    "x",
    "x x",
    "x x x",
    "x x x x x x x",
    "i",
    "x i",
    "x c",
    "c x",
    "x c c",
    "x -",
    "- x",
    "x x -",
    "q",
    "q q",
    "q q c",
)
"""The inputs of an operator: x has floats, i integers, q codes, c a constant; - is left out."""  # fmt: skip
SHAPES = ((), (-1,), (1, -1, 3))


def file_of(op: str, inputs: list[str], shape: tuple[int, ...]) -> bytes:
    """An operator with inputs of a shape."""
    graph = SubgraphBuilder()
    makers: dict[str, Callable[[], int]] = {
        "x": lambda: graph.input(shape),
        "i": lambda: graph.input(shape, "int32", "i"),
        "q": lambda: graph.input(shape, "int8", "q", scale=[0.5], zero=[3]),
        "c": lambda: graph.constant([1, 2], "int32"),
        "-": lambda: -1,
    }
    tensors = {name: makers[name]() for name in dict.fromkeys(inputs)}
    graph.outputs.append(graph.result(op, [tensors[name] for name in inputs], shape))
    return file_bytes(graph)


@pytest.mark.parametrize("op", sorted(TRANSLATORS))
def test_an_operator_with_wrong_inputs_is_read_or_refused(op: str, default_suite: bool) -> None:
    refused = 0
    for inputs, shape in pairs(INPUTS, SHAPES, half=default_suite):
        try:
            pulse.load(file_of(op, inputs.split(), shape)).analyse()
        except pulse.PulseError:
            refused += 1
    assert refused


@pytest.mark.parametrize("op", ["CALL", "WHILE"])
def test_a_subgraph_that_runs_itself_is_refused(op: str) -> None:
    graph = SubgraphBuilder()
    graph.outputs.append(graph.result(op, [graph.input((1, -1))], (1, -1)))
    with pytest.raises(LoadError, match="runs subgraph 0, which contains it; a recursion never ends"):
        pulse.load(file_bytes(graph)).analyse()


def choice() -> list[SubgraphBuilder]:
    """A graph that chooses between two, which have no nodes yet."""
    main, *branches = (SubgraphBuilder(name) for name in ("main", "then", "else"))
    inputs = [main.input((), "bool", "go"), main.input((1, -1))]
    subgraphs = {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}
    main.outputs.append(main.result("IF", inputs, (1, -1), "IfOptions", **subgraphs))
    return [main, *branches]


LATE_BRANCHES = {
    "SQUEEZE": "and the branches differ: .*; give inputs fixed sizes or values",
    "MULTINOMIAL": "so both branches are needed, and the else_branch does not load: .*MULTINOMIAL.*; give inputs",
}


@pytest.mark.parametrize("else_op", LATE_BRANCHES)
def test_branches_of_a_condition_known_late_must_agree(else_op: str) -> None:
    main, *branches = choice()
    for branch, op in zip(branches, ("ABS", else_op)):
        branch.outputs.append(branch.result(op, [branch.input((1, -1))], (1, -1)))
    reason = rf"\(IF\): its condition go is only known while running, {LATE_BRANCHES[else_op]}"
    with pytest.raises(LoadError, match=reason):
        pulse.load(file_bytes(main, *branches)).analyse()


def test_branches_with_different_numbers_of_results_are_refused() -> None:
    main, *branches = choice()
    for branch, count in zip(branches, (1, 2)):
        source = branch.input((1, -1))
        branch.outputs += [branch.result("ABS", [source], (1, -1)) for _ in range(count)]
    with pytest.raises(
        LoadError, match=r"\(IF\): its branches make 1 and 2 values; give both the same results"
    ):
        pulse.load(file_bytes(main, *branches)).analyse()


def test_complex_numbers_elsewhere_are_refused() -> None:
    graph = SubgraphBuilder()
    spectrum = graph.result(
        "RFFT2D", [graph.input((3, 1, 16)), graph.constant([1, 16], "int32")], (3, 1, 9), dtype="complex64"
    )
    product = graph.result("MUL", [spectrum, spectrum], (3, 1, 9), "MulOptions", dtype="complex64")
    graph.outputs = [graph.result("COMPLEX_ABS", [product], (3, 1, 9))]
    with pytest.raises(LoadError, match=r"\(MUL\): complex numbers are supported by CALL, COMPLEX_ABS,"):
        pulse.load(file_bytes(graph)).analyse()
