"""Calls with many arguments give them by name."""

import ast
from collections.abc import Iterator

from tests.sources import modules_in, name_of, nodes_in, tree_of

MAX_POSITIONAL = 7
"""The positional arguments that a reader still counts."""
INSTRUCTIONS = ("pulse/jit/", "pulse/program/kernels/")
"""Folders whose calls become machine code, which has no keywords."""
ANY_NUMBER = {"rule", "_add", "write_channels", "pack"}
"""Functions that take any number of arguments, or are compiled."""


def long_calls(tree: ast.Module) -> Iterator[str]:
    """The functions that are called with more than ``MAX_POSITIONAL`` positional arguments."""
    for node in nodes_in(tree):
        if isinstance(node, ast.Call) and len(node.args) > MAX_POSITIONAL:
            if any(isinstance(argument, ast.Starred) for argument in node.args):
                continue  # as many as a sequence has
            name = ast.unparse(node.func)
            if name.rpartition(".")[2] not in ANY_NUMBER:
                yield name


def test_calls_with_many_arguments_give_them_by_name() -> None:
    assert [*long_calls(ast.parse("a.f(1, 2, 3, 4, 5, 6, 7, 8)"))] == ["a.f"]
    wrong = [
        f"{name_of(path)}: {name}"
        for path in modules_in("pulse", "streaming", "bench")
        if not name_of(path).startswith((*INSTRUCTIONS, "bench/torch_codes/"))
        for name in long_calls(tree_of(path))
    ]
    assert not wrong, f"give the arguments by name, or join those that belong together in a record: {wrong}"
