"""Every family of operator cases."""

import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module

from tests.pulse.cases.build import Case

NAMES = (
    "elementwise",
    "elementwise_bits",
    "conv",
    "pool",
    "shape",
    "slice",
    "concat",
    "gather",
    "pad",
    "source",
    "shape_arithmetic",
    "matmul",
    "reduce",
    "norm",
    "recurrent",
    "cumulative",
    "scan",
    "spectral",
    "resize",
    "shape_shuffle",
    "search",
    "attention",
    "scatter",
    "matmul_einsum",
    "quantize",
    "control",
    "conv_causal",
    "attention_rotary",
    "attention_linear",
    "scatter_cache",
    "conv_columns",
    "elementwise_activation",
)
"""Plain models first: the table of operators is made of the first ones that have an operator."""
FAMILIES = {name: import_module(f"tests.pulse.cases.{name}") for name in NAMES}


@cache
def cases(family: str) -> tuple[Case, ...]:
    """The cases of a family, made once and never changed."""
    return tuple(case for generator in FAMILIES[family].ALL for case in generator())


def newest_cases(cases: Iterable[Case]) -> tuple[Case, ...]:
    """The cases of the newest opset, of those that differ only in their opset or their symbols."""
    newest: dict[str, tuple[int, Case]] = {}
    for case in cases:
        match = re.fullmatch(r"(.*)-(\d+)-(?:fixed|T)", case[0])
        name, opset = (match[1], int(match[2])) if match else (case[0], 0)
        if name not in newest or newest[name][0] < opset:
            newest[name] = opset, case
    return tuple(case for _, case in newest.values())


@cache
def all_cases() -> tuple[Case, ...]:
    """The cases of all families."""
    return tuple(case for family in FAMILIES for case in cases(family))
