"""Rotary positions."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node


def rotary() -> Iterator[Case]:
    """Halves and neighbours, all and some channels, positions given and not, both layouts."""
    cos, sin = floats("cos", 9, 4), floats("sin", 9, 4)
    x = floats("x", 2, 3, 7, 8)
    positions = np.arange(14).reshape(2, 7) % 9
    for interleaved in (0, 1):
        operator = node("RotaryEmbedding", "x c s", interleaved=interleaved)
        table = {"c": cos[positions], "s": sin[positions]}
        yield from cases(f"RotaryEmbedding_{interleaved}", [operator], {"x": x}, table, (23,), {"x": 1})
        yield from cases(
            f"RotaryEmbedding_{interleaved}_side",
            [operator],
            {"x": x, **table},
            None,
            (23,),
            {"x": 2, "c": 1, "s": 1},
        )
        operator = node("RotaryEmbedding", "x c s p", interleaved=interleaved, num_heads=3)
        flat = {"x": x.transpose(0, 2, 1, 3).reshape(2, 7, 24).copy(), "p": positions}
        yield from cases(
            f"RotaryEmbedding_{interleaved}_flat",
            [operator],
            flat,
            {"c": cos, "s": sin},
            (23,),
            {"x": 1, "p": 1},
        )
        operator = node("RotaryEmbedding", "x c s p", interleaved=interleaved, rotary_embedding_dim=4)
        part = {"c": cos[:, :2].copy(), "s": sin[:, :2].copy(), "p": positions}
        yield from cases(f"RotaryEmbedding_{interleaved}_part", [operator], {"x": x}, part, (23,))


ALL = (rotary,)
