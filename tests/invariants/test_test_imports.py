"""Helpers that several tests use are in separate modules: no module imports a test."""

from docs.tables.layer_list import packages_of
from tests.invariants.imports import imports_of
from tests.sources import modules_in, name_of


def test_no_module_imports_a_test() -> None:
    paths = modules_in("tests")
    tests = {
        name_of(path).removesuffix(".py").replace("/", ".") for path in paths if path.stem[:5] == "test_"
    }
    assert len(tests) > 200
    wrong = {
        name_of(path): name for path in paths for name in imports_of(path) if tests & set(packages_of(name))
    }
    assert not wrong, f"move what they need into a module that a noun names: {wrong}"
