# pyright: basic
"""Assertions as a module's author writes them; pytest rewrites those of the test files."""

import sys
from typing import Any

import pytest

from pulse.torch.replacements.conditions import asserted_value

torch: Any = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'pulse-stream[torch]'")


class Codebook(torch.nn.Module):
    """Codes by the nearest row of a table, looked up with an index for each element; made in a first call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("is_made", torch.tensor(True))
        self.register_buffer("table", torch.randn(7, 3))

    def forward(self, x: Any) -> Any:
        if not self.is_made:
            raise RuntimeError("no table")
        assert (x == x).all()
        assert not torch.isnan(x).any(), "a frame is not a number"
        assert (x == x).all().item()
        assert x.abs().max() < 1e6
        codes = torch.cdist(x, self.table[None]).argmin(-1)
        return self.table[None].gather(1, codes[..., None].expand(-1, -1, 3))


class Truth:
    """Tells what ``asserted_value`` says of the place where it is asked."""

    def __init__(self) -> None:
        self.answers: list[bool | None] = []

    def __bool__(self) -> bool:
        value = asserted_value(sys._getframe(1))
        self.answers.append(value)
        return True if value is None else value


def ask(truth: Any) -> list[int]:
    """Conditions in assertions, then others."""
    assert truth
    assert not truth, "a message"
    assert truth
    assert truth
    if not truth:
        raise ValueError
    return [number for number in range(3) if truth]
