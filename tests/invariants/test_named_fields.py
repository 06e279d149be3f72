"""Memory that compiled code shares is read by the names of its fields: no index is a position that is agreed upon."""

import ast
from collections.abc import Iterator

from tests.sources import modules_in, name_of, nodes_in, tree_of

FOLDERS = ("pulse", "streaming")
COMPILED = {"device", "exact", "routine", "entry", "callback"}
KERNELS = "pulse/program/kernels"
"""There a literal index is of one of several equal elements: a register, or the only element of an operand."""


def modules() -> dict[str, ast.Module]:
    """Return all modules by path."""
    return {name_of(path): tree_of(path) for path in modules_in(*FOLDERS)}


def numbered_names(tree: ast.AST) -> set[str]:
    """Names that are numbered from 0 on: ``A, B = range(2)``, ``A, B = 0, 1``."""
    numbered: set[str] = set()
    for node in nodes_in(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            value = node.value
            parts = value.elts if isinstance(value, ast.Tuple) else [value]
            counted = [part.value for part in parts if isinstance(part, ast.Constant)]
            if any("range(" in ast.unparse(part) for part in parts) or counted == [*range(len(parts))]:
                names = [target.id for target in node.targets[0].elts if isinstance(target, ast.Name)]
                numbered |= {name for name in names if name.isupper()}
    return numbered


def names_used(index: ast.expr) -> set[str]:
    inside = [node for node in ast.walk(index) if not isinstance(node, ast.Subscript)]
    names = {node.id for node in inside if isinstance(node, ast.Name)}
    return names | {node.attr for node in inside if isinstance(node, ast.Attribute)}


def compiled_functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Functions that are declared for compiled code."""
    for node in nodes_in(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = (
                decorator.func if isinstance(decorator, ast.Call) else decorator
                for decorator in node.decorator_list
            )
            if any(isinstance(decorator, ast.Name) and decorator.id in COMPILED for decorator in decorators):
                yield node


def positions(tree: ast.AST, names: set[str], literals: bool) -> list[str]:
    """Indices that are numbered names; ``literals``: and, in compiled functions, those that are numbers."""
    every = [node for node in nodes_in(tree) if isinstance(node, ast.Subscript)]
    indices = [ast.unparse(node) for node in every if names_used(node.slice) & names]
    for function in compiled_functions(tree) if literals else ():
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                indices.append(ast.unparse(node))
    return indices


def test_no_index_is_a_position() -> None:
    trees = modules()
    names = {path: numbered_names(tree) for path, tree in trees.items()}
    everywhere = set[str]().union(*names.values())
    imported = {
        path: {
            alias.name for node in nodes_in(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        | {path.rpartition("/")[2]}
        for path, tree in trees.items()
    }
    wrong = {
        path: used
        for path, tree in trees.items()
        if (used := positions(tree, names[path] | everywhere & imported[path], not path.startswith(KERNELS)))
    }
    assert not wrong


def test_positions_are_found() -> None:
    tree = ast.parse("A, B = range(2)\nwords[B] = 1\n@device\ndef f(gains): return gains[4]")
    assert positions(tree, numbered_names(tree), True) == ["words[B]", "gains[4]"]
