"""Imports between our modules."""

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from docs.tables.layer_list import packages_of
from tests.sources import nodes_in, tree_of

IMPORTS_SIBLINGS = "pulse.support.registry.import_siblings"
"""The function that imports all modules of its caller's package."""


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    """The names that a file imports anywhere, in functions and for type checkers too; ``module.name`` of what it takes.

    Several tests ask for the same files.
    """
    return tuple(_imports(path, tree_of(path)))


def _imports(path: Path, tree: ast.Module) -> Iterator[str]:
    for node in nodes_in(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_names(tree: ast.Module) -> Iterator[str]:
    """The names that a module defines, or takes from another one to offer them: ``import name as name``."""
    for node in nodes_in(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.ImportFrom(names=aliases):
                yield from (alias.name for alias in aliases if alias.asname == alias.name)
            case _:
                pass


def import_graph(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """Module -> the modules of ours that it imports."""
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        imported = {
            next((m for m in packages_of(imported_name) if m in files), name)
            for imported_name in imports_of(path)
        }
        if IMPORTS_SIBLINGS in imports_of(path):
            imported |= siblings(name, files)
        graph[name] = imported - {name}
    return graph


def siblings(registrar: str, files: Collection[str]) -> set[str]:
    """The modules that ``families`` of a package imports: those in it, but for packages with a list of their own."""
    return {name for name in files if name != registrar and _registrar_of(name, files) == registrar}


def _registrar_of(module: str, files: Collection[str]) -> str | None:
    lists = (f"{package}.families" for package in packages_of(module))
    return next((name for name in lists if name in files), None)


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other in a cycle; empty if there is no cycle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
