"""Families of operators: the same names in every folder that goes by them."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.sources import modules_in, name_of, nodes_in, tree_of

ROOT = Path(__file__).parents[2]
FAMILIES: Mapping[str, str] = {
    "elementwise": "functions of single entries, casts, bits",
    "reduce": "reductions, places of an extreme",
    "norm": "softmax, normalisations",
    "matmul": "matrix products, sums of products",
    "conv": "convolutions and their transposes",
    "pool": "pools over windows",
    "recurrent": "RNN, GRU, LSTM",
    "cumulative": "running sums and products",
    "scan": "bodies that run for every frame",
    "control": "branches and loops",
    "attention": "attention, positions by rotation",
    "spectral": "Fourier transforms, filter banks",
    "shape": "reshapes, transposes, shapes as tensors",
    "slice": "slices, splits, reversals",
    "concat": "joins",
    "pad": "padding",
    "gather": "entries read by index",
    "scatter": "entries written by index",
    "search": "largest entries, selections, masks made from indices",
    "resize": "resizing",
    "time": "delays, positions, ends, lengths: what pulsed models have",
    "quantize": "codes with a scale, products of codes",
    "source": "inputs, constants, ranges",
    "fault": "values that have no result, counted",
}
"""Each family, and what is in it."""

FOLDERS: Mapping[str, frozenset[str]] = {
    "pulse/ops": frozenset(
        {"arithmetic", "bodies", "check", "clock", "generic", "op", "stateful", "weight_units", "work"}
    ),
    "pulse/onnx/operators": frozenset(),
    "pulse/tensorflow/operators": frozenset(),
    "pulse/tflite/operators": frozenset(),
    "pulse/nnef/operators": frozenset(),
    "pulse/program/lower": frozenset({"copy_interleaved", "stream_state"}),
    "pulse/program/kernels": frozenset(
        {"copy", "dtypes", "families", "vmath", "vmath_hyperbolic", "vmath_trigonometry"}
    ),
    "tests/pulse/cases": frozenset({"build", "families"}),
}
"""Each folder that goes by families, and what all families in it are made of."""

OF_GRAPHS = frozenset({"Const", "CountFaults", "Delay", "Source"})
"""Ops that graphs are made of, whatever the model."""


def classes(folder: str) -> set[str]:
    """The classes that the families of a folder declare."""
    paths = [path for path in (ROOT / folder).glob("*.py") if path.stem not in FOLDERS[folder]]
    bodies = [tree_of(path).body for path in paths]
    return {node.name for body in bodies for node in body if isinstance(node, ast.ClassDef)} - OF_GRAPHS


def names_in(*nodes: ast.AST | None) -> set[str]:
    """The names in expressions."""
    inner = [each for node in nodes if node is not None for each in ast.walk(node)]
    return {each.id for each in inner if isinstance(each, ast.Name)}


def names_of_questions(tree: ast.Module) -> Iterator[set[str]]:
    """The names by which a module decides: in isinstance, in a pattern, as keys of a table, in decorators."""
    for node in nodes_in(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                yield names_in(kinds)
            case ast.MatchClass(cls=kind):
                yield names_in(kind)
            case ast.Dict(keys=keys):
                yield names_in(*keys)
            case ast.FunctionDef(decorator_list=decorators):
                yield names_in(*decorators)
            case _:
                pass


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_bear_the_name_of_their_family(folder: str) -> None:
    names = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__"}
    shared = FOLDERS[folder]
    assert shared < names
    strange = {name for name in names - shared if name.partition("_")[0] not in FAMILIES}
    assert not strange, (
        f"{folder}: {sorted(strange)}: a file is family.py or family_part.py, of the list above"
    )


def test_every_family_is_there() -> None:
    found = {path.stem.partition("_")[0] for folder in FOLDERS for path in (ROOT / folder).glob("*.py")}
    assert set(FAMILIES) <= found


def test_other_places_that_decide_by_the_class_of_an_op_are_listed() -> None:
    known = classes("pulse/ops") | classes("pulse/program/kernels")
    text = (
        (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("**Other places**")[2].partition("\n8. ")[0]
    )
    listed = [word for word in text.split("`") if word.startswith("pulse/")]
    found = {
        name_of(path)
        for path in modules_in("pulse")
        if name_of(path.parent) not in FOLDERS
        and any(names & known for names in names_of_questions(tree_of(path)))
    }
    assert len(found) > 10
    assert sorted(listed) == sorted({*found, "pulse/ops/bodies.py"}), "CONTRIBUTING.md, other places of an op"
