"""Registries, and lists of the modules that fill them."""

import sys
from pathlib import Path

import pytest

from docs.tables.layer_list import modules
from pulse.support.registry import Registry, import_siblings
from tests.invariants.imports import siblings

FILES = (
    "__init__",
    "families",
    "pad",
    "conv",
    "norm/__init__",
    "norm/batch",
    "apart/__init__",
    "apart/families",
    "apart/pad",
)


def test_a_key_has_one_function() -> None:
    registry = Registry[str, object]()
    registry.register("Conv", "ConvInteger")(print)
    with pytest.raises(ValueError, match="ConvInteger is registered twice"):
        registry.register("ConvInteger")(len)


def test_siblings_are_imported_except_packages_with_own_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FILES:
        path = tmp_path / "listed_here" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    import_siblings("listed_here.families")
    imported = [name for name in sys.modules if name not in before]
    for name in imported:
        monkeypatch.delitem(sys.modules, name)
    in_order = ["listed_here", *(f"listed_here.{name}" for name in ("conv", "norm", "norm.batch", "pad"))]
    assert imported == in_order
    assert siblings("listed_here.families", modules(tmp_path, ("listed_here",))) == {*in_order}
