"""Elementwise functions with axes by name are PyTorch's own, on axes that were moved; others stay as they are."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'pulse-stream[torch]'")

X, Y = torch.arange(6.0).reshape(2, 3), torch.arange(3.0)


@pytest.fixture
def einx(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The names of two of the package's functions, which are not called here."""
    module = SimpleNamespace(subtract=lambda *_: "original", where=lambda *_: "original")
    monkeypatch.setitem(sys.modules, "einx", module)
    return module


CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("j, i -> 1 i j", (Y, X[:, 0]), (Y - X[:, :1])[None]),
    ("i j, j -> j i", (X, Y), (X - Y).T),
    ("... j, ... i -> ... i j", (X, X), X[:, None] - X[:, :, None]),
    ("i j, -> i j", (X, 2.0), X - 2),
    ("b j, j -> b j", (X, Y), X - Y),
]


@pytest.mark.parametrize(("pattern", "operands", "expected"), CASES)
def test_operands_are_moved(
    einx: SimpleNamespace, pattern: str, operands: tuple[Any, ...], expected: Any
) -> None:
    from pulse.torch.replacements.named_axes import keep_named_axes

    with keep_named_axes(torch):
        output = einx.subtract(pattern, *operands)
    assert output.shape == expected.shape
    assert torch.equal(output, expected)
    assert einx.subtract(pattern, *operands) == "original"


def test_where_chooses_along_named_axes(einx: SimpleNamespace) -> None:
    from pulse.torch.replacements.named_axes import keep_named_axes

    with keep_named_axes(torch):
        output = einx.where("j, i j, -> i j", Y > 0, X, -1.0)
    assert torch.equal(output, torch.where(Y > 0, X, -1.0))


@pytest.mark.parametrize(
    "pattern",
    ["i (j k), k -> i j k", "i [j], j -> i", "i j, j", "i j, k -> i j", "i j k, j -> i j k", "i i, i -> i"],
)
def test_other_patterns_are_left_alone(einx: SimpleNamespace, pattern: str) -> None:
    from pulse.torch.replacements.named_axes import keep_named_axes

    with keep_named_axes(torch):
        assert einx.subtract(pattern, X, Y) == "original"
