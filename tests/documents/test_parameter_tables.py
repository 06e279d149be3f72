"""Tables of docstrings: the names in them exist, a class that holds values explains its fields, errors have causes."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.sources import modules_in, name_of, tree_of

FOLDERS = ("pulse", "streaming", "bench")
ROW = re.compile(r" {0,3}([a-z_]\w*(?:, [a-z_]\w*)*) {2,}\S")
"""``name  meaning`` or ``name, name  meaning``, in lowercase. Values are in backticks."""
HOLDERS = {"record", "dataclass", "Struct"}
"""Decorators and bases of classes that hold values."""
MIN_FIELDS = 4
TABLES_REQUIRED = re.compile(r"pulse/(ops/)?\w+\.py|streaming/(native/control_block|\w+)\.py")
"""Files whose classes with this many fields have a table. A table is complete in all files."""
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
MAKERS = ("__init__", "__new__")
ERRORS = r"(?:[A-Z]\w*(?:Error|Exception)|struct\.error)"
WITHOUT_CAUSE = re.compile(rf"\b(?:Raises|;)\s+{ERRORS}(?:,\s+{ERRORS})*+(?!\w|:\s|\s+as\s+``)")
"""An error without its cause, or with another form than ``Raises LoadError: it is damaged``."""


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
            explained = set(names_in(node)) if isinstance(node, ast.ClassDef) else parameters(node)
            yield from ((node.name, name) for name in sorted(table_names(text) - explained))


def table_names(text: str) -> set[str]:
    """The names in the table of a docstring."""
    rows = [match[1] for line in text.splitlines()[1:] if (match := ROW.match(line))]
    return {name for row in rows for name in row.split(", ")}


def fields_in(node: ast.ClassDef) -> Iterator[str]:
    """The public fields of a class without a docstring of their own."""
    for part, after in zip(node.body, [*node.body[1:], ast.Pass()]):
        match part, after:
            case ast.AnnAssign(), ast.Expr(value=ast.Constant()):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind), _ if name[0] != "_":
                yield from () if "ClassVar" in ast.unparse(kind) else (name,)
            case _:
                pass


def unexplained_fields(tree: ast.Module, requires_table: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield public classes that hold values, with the fields that are missing in their tables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name[0] != "_" and HOLDERS & origins_of(node):
            fields, explained = [*fields_in(node)], table_names(ast.get_docstring(node) or "")
            missing = [name for name in fields if name not in explained]
            has_table = len(missing) < len(fields)
            if len(fields) >= MIN_FIELDS and missing and (has_table or requires_table):
                yield node.name, missing


def origins_of(node: ast.ClassDef) -> set[str]:
    """The names of its decorators, called or not, and of its bases."""
    return {ast.unparse(origin).split("(")[0] for origin in (*node.decorator_list, *node.bases)}


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ("x, y  numbers", []),
        ("x  a number\n    z  nothing", ["z"]),
        ("Returns  a number\n    Raises   never\n    ``sum``  a value of x", []),
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


@pytest.mark.parametrize(
    ("table", "requires_table", "missing"),
    [
        ("a, b, c  numbers\n    d  another", True, []),
        ("a, b  numbers", False, ["c", "d"]),
        ("Numbers.", False, []),
        ("Numbers.", True, ["a", "b", "c", "d"]),
    ],
)
def test_fields_without_a_row_are_found(table: str, requires_table: bool, missing: list[str]) -> None:
    fields = "\n".join(f"    {name}: int" for name in "abcd")
    source = f'@record(eq=False)\nclass Four:\n    """Four.\n\n    {table}\n    """\n{fields}\n    _e: int\n'
    assert [
        name for _, names in unexplained_fields(ast.parse(source), requires_table) for name in names
    ] == missing


def test_classes_that_hold_values_explain_their_fields() -> None:
    wrong = {
        name: classes
        for path in modules_in("pulse", "streaming")
        if (name := name_of(path))
        and (classes := [*unexplained_fields(tree_of(path), bool(TABLES_REQUIRED.fullmatch(name)))])
    }
    assert not wrong


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("Read it. Raises LoadError: it is damaged.", False),
        ("Read it. Raises LoadError as ``load``.", False),
        ("Read it.\n\n    Raises LoadError, InputError: it is damaged\n", False),
        ("Read it. Raises LoadError: it is damaged; InputError: it is closed.", False),
        ("Read it. Raises LoadError.", True),
        ("Read it. Raises LoadError. Then close it.", True),
        ("Read it. Raises LoadError, InputError.", True),
        ("Read it. Raises LoadError if it is damaged.", True),
        ("Read it. Raises LoadError, naming the file.", True),
        ("Read it.\n\n    Raises   LoadError\n", True),
        ("Read it.\n\n    Raises   LoadError; InputError: it is closed\n", True),
    ],
)
def test_errors_without_a_cause_are_found(text: str, is_wrong: bool) -> None:
    assert bool(WITHOUT_CAUSE.search(text)) == is_wrong


def test_errors_of_docstrings_have_causes() -> None:
    texts = {
        f"{name_of(path)}: {node.name}": text
        for path in modules_in(*FOLDERS)
        for node in ast.walk(tree_of(path))
        if isinstance(node, Definition) and (text := ast.get_docstring(node))
    }
    assert len(texts) > 3000
    assert not [name for name, text in texts.items() if WITHOUT_CAUSE.search(text)]
