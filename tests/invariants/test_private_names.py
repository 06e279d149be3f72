"""Tests use what the project promises: they read no attribute that begins with an underscore, and replace none."""

import ast
from collections.abc import Iterator

from tests.sources import modules_in, name_of, nodes_in, tree_of

ALLOWED = {
    "_exit": "of Python: ends a process that was forked",
    "_getframe": "of Python: where a trace is",
    "_run_exitfuncs": "of Python: what it does at its end",
    "_version": "of PyTorch: how often a tensor was written",
}
"""Which are used all the same, and why."""
REPLACE = ("setattr", "delattr", "getattr")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each private attribute of anything but ``self`` and ``cls``."""
    for node in nodes_in(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, alias.name) for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            if called in REPLACE:
                for argument in node.args[:2]:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield from (
                            (node.lineno, part) for part in argument.value.split(".") if is_private(part)
                        )


def test_tests_use_no_private_names() -> None:
    uses = [
        (f"{name_of(path)}:{line}", name)
        for path in modules_in("tests")
        for line, name in private_names(tree_of(path))
    ]
    assert [f"{place}: {name}" for place, name in uses if name not in ALLOWED] == []
    assert {name for _, name in uses} == ALLOWED.keys(), "one of them is no longer needed"
