"""The names that docstrings explain in a table exist: parameters, fields and attributes."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.sources import modules_in, name_of, tree_of

FOLDERS = ("pulse", "streaming", "bench")
ROW = re.compile(r" {0,3}([a-z_]\w*(?:, [a-z_]\w*)*) {2,}\S")
"""``name  meaning`` or ``name, name  meaning``, in lowercase. Values are in backticks."""
RESULTS = {"returns", "yields"}
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
MAKERS = ("__init__", "__new__")


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of its parameters."""
    every = function.args
    more = [argument for argument in (every.vararg, every.kwarg) if argument is not None]
    return {argument.arg for argument in (*every.posonlyargs, *every.args, *every.kwonlyargs, *more)}


def names_in(node: ast.AST) -> Iterator[str]:
    """The fields, methods and attributes of a class, and its constructor's parameters."""
    for part in ast.walk(node):
        match part:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
                yield from parameters(part) if name in MAKERS else ()
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls")):
                yield name
            case _:
                pass


def unknown_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield class or function, and a name in a table of its docstring that it does not have."""
    for node in ast.walk(tree):
        if isinstance(node, Definition) and (text := ast.get_docstring(node)):
            rows = [match[1] for line in text.splitlines()[1:] if (match := ROW.match(line))]
            explained = set(names_in(node)) if isinstance(node, ast.ClassDef) else parameters(node)
            named = {name for row in rows for name in row.split(", ")}
            yield from ((node.name, name) for name in sorted(named - explained - RESULTS))


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ("x, y  numbers", []),
        ("x  a number\n    z  nothing", ["z"]),
        ("returns  a number\n    Raises   never\n    ``sum``  a value of x", []),
        ("It takes x and gives a z that is\n    written without  a table.", []),
    ],
)
def test_names_of_a_table_are_found(table: str, wrong: list[str]) -> None:
    source = f'def add(x, y):\n    """Add.\n\n    {table}\n    """\n'
    assert [name for _, name in unknown_names(ast.parse(source))] == wrong


def test_names_in_tables_are_parameters() -> None:
    wrong = {name_of(path): list(unknown_names(tree_of(path))) for path in modules_in(*FOLDERS)}
    assert len(wrong) > 500
    assert not {name: unknown for name, unknown in wrong.items() if unknown}
