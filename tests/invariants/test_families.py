"""Families of operators: the same names in every folder that goes by them."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType

import pytest

from docs.tables.layer_list import modules
from pulse.onnx.operators import elementwise
from pulse.onnx.operators import families as families
from pulse.onnx.registry import RULES
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.program.kernels.elementwise_microops import MICRO_OPS
from tests.invariants.imports import import_graph, siblings
from tests.pulse.cases import families as cases
from tests.pulse.tflite.cases import families as tflite_cases
from tests.sources import ROOT, modules_in, name_of, nodes_in, tree_of

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
        {
            "arithmetic",
            "check",
            "clock",
            "dims",
            "folding",
            "generic",
            "indices",
            "op",
            "stateful",
            "weight_units",
            "work",
        }
    ),
    "pulse/onnx/operators": frozenset({"families"}),
    "pulse/tensorflow/operators": frozenset({"families"}),
    "pulse/tflite/operators": frozenset({"families"}),
    "pulse/nnef/operators": frozenset({"families"}),
    "pulse/program/lower": frozenset({"families", "stream_state"}),
    "pulse/program/lower/interleaved": frozenset({"copy", "families", "lowering"}),
    "pulse/program/kernels": frozenset(
        {"copy", "dtypes", "families", "row_tuples", "vmath", "vmath_hyperbolic", "vmath_trigonometry"}
    ),
    "tests/pulse/cases": frozenset({"build", "families"}),
    "tests/pulse/tflite/cases": frozenset({"case", "families"}),
}
"""Each folder that goes by families, and what all families in it are made of."""

MAX_FILES = 5
"""The most files of a family in one folder; more of them are a package of their own."""

OF_GRAPHS = frozenset({"Const", "CountFaults", "Delay", "Source"})
"""Ops that graphs are made of, whatever the model."""


def packages(folder: str) -> dict[str, int]:
    """The packages of a family in a folder that goes by families, and the number of files in each."""
    inits = [init for init in (ROOT / folder).glob("*/__init__.py") if name_of(init.parent) not in FOLDERS]
    return {init.parent.name: len(list(init.parent.glob("*.py"))) - 1 for init in inits}


def stems(folder: str) -> list[str]:
    """The files of a folder, without those of its packages."""
    return [path.stem for path in (ROOT / folder).glob("*.py") if path.stem != "__init__"]


def classes(folder: str) -> set[str]:
    """The classes that the families of a folder declare."""
    paths = [path for path in modules_in(folder) if path.stem not in FOLDERS[folder]]
    bodies = [tree_of(path).body for path in paths]
    return {node.name for body in bodies for node in body if isinstance(node, ast.ClassDef)} - OF_GRAPHS


def names_in(*nodes: ast.AST | None) -> set[str]:
    """Return the names in expressions."""
    inner = [part for node in nodes if node is not None for part in ast.walk(node)]
    return {part.id for part in inner if isinstance(part, ast.Name)}


def names_of_questions(tree: ast.Module) -> Iterator[set[str]]:
    """The names by which a module decides: in isinstance, a pattern, the keys of a table, a decorator, a rewrite."""
    for node in nodes_in(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                yield names_in(kinds)
            case ast.Call(func=ast.Name(id="Rewrite"), args=args):
                yield names_in(*args)
            case ast.MatchClass(cls=kind):
                yield names_in(kind)
            case ast.Dict(keys=keys):
                yield names_in(*keys)
            case ast.FunctionDef(decorator_list=decorators):
                yield names_in(*decorators)
            case _:
                pass


def decides_by_function(tree: ast.Module) -> bool:
    """Whether a module compares the name of a function: ``op.kind == …`` of an Elementwise."""
    conditions = [node for node in nodes_in(tree) if isinstance(node, ast.BoolOp)]
    functions = [node for node in nodes_in(tree) if isinstance(node, ast.FunctionDef)]
    return any(_asks_for_class(condition) and _compares_kind(condition) for condition in conditions) or any(
        {"TypedNode", "Elementwise"} <= names_in(*(argument.annotation for argument in function.args.args))
        and any(_is_kind(node.left) for node in ast.walk(function) if isinstance(node, ast.Compare))
        for function in functions
    )


def _asks_for_class(condition: ast.BoolOp) -> bool:
    calls = [node for node in ast.walk(condition) if isinstance(node, ast.Call)]
    return any("Elementwise" in names_in(*call.args) for call in calls)


def _compares_kind(condition: ast.BoolOp) -> bool:
    return any(_is_kind(term.left) for term in condition.values if isinstance(term, ast.Compare))


def _is_kind(left: ast.expr) -> bool:
    return isinstance(left, ast.Attribute) and left.attr == "kind"


def places_in(files: Iterable[str], listed: Iterable[str]) -> set[str]:
    """The files, or the listed folders that they are in."""
    return {
        next((folder for folder in listed if path == folder or path.startswith(f"{folder}/")), path)
        for path in files
    }


def listed_after(mark: str, end: str) -> list[str]:
    """The files and folders of pulse that a part of CONTRIBUTING names."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition(mark)[2].partition(end)[0]
    return [word for word in text.split("`") if word.startswith("pulse/")]


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_bear_the_name_of_their_family(folder: str) -> None:
    names, shared = {*stems(folder)}, FOLDERS[folder]
    assert shared < names
    strange = {name for name in names - shared if name.partition("_")[0] not in FAMILIES}
    strange |= packages(folder).keys() - FAMILIES.keys()
    assert not strange, (
        f"{folder}: {sorted(strange)}: a file is family.py or family_part.py, of the list above; a package family/"
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_families_of_many_files_are_packages(folder: str) -> None:
    counts = Counter(name.partition("_")[0] for name in stems(folder) if name not in FOLDERS[folder])
    in_packages = packages(folder)
    assert not {
        family: count for family, count in counts.items() if count > MAX_FILES or family in in_packages
    }
    assert not {family: count for family, count in in_packages.items() if count <= MAX_FILES}


def test_one_list_imports_the_files_for_interleaved_lanes() -> None:
    package = "pulse.program.lower.interleaved"
    graph = import_graph(modules(packages=("pulse",)))
    files = siblings(f"{package}.families", graph) - {f"{package}.lowering"}
    assert len(files) >= 12
    importers = {
        name
        for name, imported in graph.items()
        if imported & {*files, f"{package}.families"} and name not in files
    }
    assert importers == {f"{package}.families", "pulse.program.native.interleaved_table"}, (
        "most programs need none of them, and would import them at each start"
    )


@pytest.mark.parametrize(
    ("folder", "families"),
    [("tests/pulse/cases", cases.FAMILIES), ("tests/pulse/tflite/cases", tflite_cases.FAMILIES)],
    ids=["onnx", "tflite"],
)
def test_every_file_of_cases_is_a_family_of_cases(folder: str, families: Mapping[str, ModuleType]) -> None:
    assert set(families) == {*stems(folder)} - FOLDERS[folder]


def test_elementwise_functions_have_kernels_operators_and_rules() -> None:
    assert set(ELEMENTWISE) - {"sum", "mean"} <= set(MICRO_OPS), "sum and mean are chains of additions"
    assert set(ELEMENTWISE) <= {*elementwise.OPERATORS.values(), *elementwise.COMPOSED}
    assert set(elementwise.OPERATORS) <= set(RULES)


def test_every_family_is_there() -> None:
    names = {name.partition("_")[0] for folder in FOLDERS for name in (*stems(folder), *packages(folder))}
    assert set(FAMILIES) <= names


def test_files_that_check_the_class_of_an_op_are_listed() -> None:
    class_names = classes("pulse/ops") | classes("pulse/program/kernels")
    listed = listed_after("**Other places**", "\n8. ")
    deciding = {
        name_of(path)
        for path in modules_in("pulse")
        if not {name_of(path.parent), name_of(path.parent.parent)} & FOLDERS.keys()
        and any(names & class_names for names in names_of_questions(tree_of(path)))
    }
    assert len(deciding) > 10
    assert sorted(listed) == sorted(places_in(deciding, listed)), (
        "CONTRIBUTING.md, other places of an op: files, or a folder whose files all ask for the same reason"
    )


def test_files_that_check_elementwise_names_are_listed() -> None:
    listed = listed_after("**By name**", "\n## ")
    deciding = {name_of(path) for path in modules_in("pulse") if decides_by_function(tree_of(path))}
    assert len(deciding) > 5
    assert sorted(listed) == sorted(places_in(deciding, listed)), (
        "make what the file asks for a property of FunctionEntry, or list it in CONTRIBUTING.md with the functions"
    )
