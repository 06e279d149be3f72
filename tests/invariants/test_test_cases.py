"""A case of a test is what its id says: a test keeps the values of its parameters, and each parameter varies."""

import ast
from collections.abc import Iterator

from tests.sources import modules_in, name_of, nodes_in, tree_of

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Their variables are their own."""


def functions_of_tests(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes_in(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def assigned_names(node: ast.AST) -> Iterator[str]:
    """The names that a test assigns, also in loops and functions inside it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, COMPREHENSIONS):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id
            yield from assigned_names(child)


def changed_parameters(tree: ast.Module) -> list[str]:
    """Parameters and fixtures to which a test assigns another value: its id, or Hypothesis, shows the first one."""
    return [
        name
        for test in functions_of_tests(tree)
        for name in assigned_names(test)
        if name in {argument.arg for argument in [*test.args.args, *test.args.kwonlyargs]}
    ]


def columns_of(names: ast.expr) -> list[str]:
    """The parameters of ``parametrize``: one text, or a sequence of texts."""
    value = ast.literal_eval(names)
    return value.replace(" ", "").split(",") if isinstance(value, str) else list(value)


def values_of(case: ast.expr, count: int) -> list[str]:
    """The values of a case as they are written."""
    match case:
        case ast.Call(func=ast.Attribute(attr="param"), args=values):
            pass
        case ast.Tuple(elts=values) | ast.List(elts=values) if count > 1:
            pass
        case _:
            values = [case]
    return [ast.unparse(value) for value in values]


def constant_parameters(tree: ast.Module) -> Iterator[str]:
    """Parameters that have the same value in all cases of a written list."""
    for test in functions_of_tests(tree):
        for decorator in test.decorator_list:
            match decorator:
                case ast.Call(
                    func=ast.Attribute(attr="parametrize"),
                    args=[names, ast.List(elts=cases) | ast.Tuple(elts=cases), *_],
                ) if len(cases) > 1:
                    columns = columns_of(names)
                    rows = [values_of(case, len(columns)) for case in cases]
                    yield from (name for name, *values in zip(columns, *rows) if len(set(values)) == 1)
                case _:
                    pass


def test_tests_keep_their_parameters() -> None:
    wrong = {
        name_of(path): names for path in modules_in("tests") if (names := changed_parameters(tree_of(path)))
    }
    assert not wrong, f"list the valid cases, or give the new value another name: {wrong}"


def test_each_parameter_has_several_values() -> None:
    wrong = {
        name_of(path): names
        for path in modules_in("tests")
        if (names := [*constant_parameters(tree_of(path))])
    }
    assert not wrong, f"write the value where it is used: {wrong}"


def test_changed_and_constant_parameters_are_found() -> None:
    assert changed_parameters(ast.parse("def test_a(x):\n  for x, y in pairs: ...")) == ["x"]
    text = "@pytest.mark.parametrize('a, b', [(1, 2), pytest.param(3, 2, id='c')])\ndef test_a(a, b): ..."
    assert [*constant_parameters(ast.parse(text))] == ["b"]
