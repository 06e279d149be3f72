"""The repository's Python files, most of them parsed once for all tests that read them."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("pulse", "streaming", "bench")
KEPT = (*PACKAGES, "tests")
"""Folders that several tests read: their syntax trees are kept."""


@cache
def modules_in(*folders: str) -> tuple[Path, ...]:
    """The Python files of folders of the repository, sorted."""
    return tuple(path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file; it is not changed."""
    is_ours = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in KEPT
    return _kept_tree(path) if is_ours else _parse(path)


def nodes_in(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree, from the outside in, as ``ast.walk`` gives them; listed once for a tree that is kept."""
    return _NODES.get(tree) or _list_nodes(tree)


def name_of(path: Path) -> str:
    """The path of a file from the root of the repository on."""
    return path.relative_to(ROOT).as_posix()


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _list_nodes(tree: ast.AST) -> list[ast.AST]:
    nodes = [tree]
    for node in nodes:  # which grows on the way
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif type(value) is list:
                nodes += [child for child in value if isinstance(child, ast.AST)]
    return nodes


_NODES: dict[ast.AST, list[ast.AST]] = {}


@cache
def _kept_tree(path: Path) -> ast.Module:
    tree = _parse(path)
    _NODES[tree] = _list_nodes(tree)
    return tree
