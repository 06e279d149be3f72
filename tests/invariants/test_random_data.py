"""Random data of a test depend on its own seed, not on the tests that ran before."""

import ast
from collections.abc import Iterator

from tests.sources import modules_in, name_of, nodes_in, tree_of

GENERATORS = {"default_rng", "RandomState", "Random"}
"""Calls that give a source of numbers, whose next ones depend on those that were drawn."""
HOME = "tests/noise.py"
LIBRARIES = {"tests/pulse/cases/build.py"}
"""Helpers whose noise has a seed of another form: a text."""


def called_name(node: ast.AST) -> str:
    """The last name of what is called; empty for other nodes."""
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def shared_generators(tree: ast.Module) -> Iterator[str]:
    """Generators that outlive a test: globals, attributes of classes, defaults of parameters, wide fixtures."""
    for node in nodes_in(tree):
        values: list[ast.expr | None] = []
        if isinstance(node, ast.Module | ast.ClassDef):
            values = [part.value for part in node.body if isinstance(part, ast.Assign | ast.AnnAssign)]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            values = [*node.args.defaults, *node.args.kw_defaults]
            if any("scope=" in ast.unparse(decorator) for decorator in node.decorator_list):
                values += [part.value for part in nodes_in(node) if isinstance(part, ast.Return | ast.Yield)]
        yield from (ast.unparse(value) for value in values if value and called_name(value) in GENERATORS)


def own_noise(tree: ast.Module) -> Iterator[str]:
    """Normal numbers that are drawn as f32 in a separate module: ``….standard_normal(…).astype(np.float32)``."""
    for node in nodes_in(tree):
        if called_name(node) == "astype" and ast.unparse(node).endswith("(np.float32)"):
            value = node.func.value
            value = value.right if isinstance(value, ast.BinOp) else value
            if called_name(value) == "standard_normal" and "default_rng()" not in ast.unparse(value):
                yield ast.unparse(node)


def test_no_generator_is_shared_by_tests() -> None:
    paths = modules_in("tests")
    assert len(paths) > 500
    assert not {name_of(path): texts for path in paths if (texts := [*shared_generators(tree_of(path))])}


def test_normal_noise_in_f32_comes_from_one_module() -> None:
    paths = [path for path in modules_in("tests") if name_of(path) not in {HOME, *LIBRARIES}]
    assert not {name_of(path): texts for path in paths if (texts := [*own_noise(tree_of(path))])}


def test_shared_generators_and_own_noise_are_found() -> None:
    assert [*shared_generators(ast.parse("class A:\n  rng: Random = random.Random(0)"))] == [
        "random.Random(0)"
    ]
    noise = "rng.standard_normal(3).astype(np.float32)"
    assert [*own_noise(ast.parse(noise))] == [noise]
