"""Cases of tests whose values have no readable text have an id."""

import ast
from collections.abc import Iterator

from tests.documents.pages import ROOT

READABLE_CALLS = {"float", "len"}
"""Functions whose result is a number, which pytest shows as it is."""


def is_opaque(value: ast.expr) -> bool:
    """Whether pytest shows a value as the name of its parameter and a number."""
    return isinstance(value, ast.Lambda) or (
        isinstance(value, ast.Call) and ast.unparse(value.func) not in READABLE_CALLS
    )


def needs_id(case: ast.expr) -> bool:
    """Whether a case has opaque values and no id."""
    if isinstance(case, ast.Call) and ast.unparse(case.func) == "pytest.param":
        return any(map(is_opaque, case.args)) and all(word.arg != "id" for word in case.keywords)
    return any(map(is_opaque, case.elts if isinstance(case, ast.Tuple) else [case]))


def lines_without_ids(source: str) -> Iterator[int]:
    """The lines of cases that need an id, in calls of ``parametrize`` that list them or name a list of the file."""
    tree = ast.parse(source)
    lists: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            lists.update({target.id: node.value for target in targets if isinstance(target, ast.Name)})
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("mark.parametrize"):
            continue
        if len(call.args) < 2 or any(word.arg == "ids" for word in call.keywords):
            continue
        cases = lists.get(ast.unparse(call.args[1]), call.args[1])
        if isinstance(cases, ast.List | ast.Tuple):
            yield from (case.lineno for case in cases.elts if needs_id(case))


def test_cases_of_functions_and_arrays_have_ids() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) > 300
    assert not [f"{path}:{line}" for path in files for line in lines_without_ids(path.read_text("utf-8"))]


def test_a_case_without_an_id_is_found() -> None:
    calls = '["x", lambda: 0, ("x", zeros(1)), pytest.param(zeros(1)), pytest.param(zeros(1), id="zeros")]'
    mark = "@pytest.mark.parametrize('value', {})\ndef test(value): ..."
    assert len([*lines_without_ids(mark.format(calls))]) == 3
    assert not [*lines_without_ids(mark.format("[1, 'x', (float('nan'), len('x'))]"))]
    assert not [*lines_without_ids(mark.format(f"{calls}, ids=str"))]
    named = f"CASES = {calls}\n{mark.format('CASES')}"
    assert len([*lines_without_ids(named)]) == 3
