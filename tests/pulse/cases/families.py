"""Every family of operator cases."""

import re
from collections.abc import Iterable
from functools import cache
from types import ModuleType

from tests.pulse.cases import (
    attention,
    attention_linear,
    attention_rotary,
    concat,
    control,
    conv,
    conv_causal,
    conv_columns,
    cumulative,
    elementwise,
    elementwise_activation,
    elementwise_bits,
    gather,
    matmul,
    matmul_einsum,
    norm,
    pad,
    pool,
    quantize,
    recurrent,
    reduce,
    resize,
    scan,
    scatter,
    scatter_cache,
    search,
    shape,
    shape_arithmetic,
    shape_shuffle,
    slice,
    source,
    spectral,
)
from tests.pulse.cases.build import Case

FAMILIES: dict[str, ModuleType] = {
    "elementwise": elementwise,
    "elementwise_bits": elementwise_bits,
    "conv": conv,
    "pool": pool,
    "shape": shape,
    "slice": slice,
    "concat": concat,
    "gather": gather,
    "pad": pad,
    "source": source,
    "shape_arithmetic": shape_arithmetic,
    "matmul": matmul,
    "reduce": reduce,
    "norm": norm,
    "recurrent": recurrent,
    "cumulative": cumulative,
    "scan": scan,
    "spectral": spectral,
    "resize": resize,
    "shape_shuffle": shape_shuffle,
    "search": search,
    "attention": attention,
    "scatter": scatter,
    "matmul_einsum": matmul_einsum,
    "quantize": quantize,
    "control": control,
    "conv_causal": conv_causal,
    "attention_rotary": attention_rotary,
    "attention_linear": attention_linear,
    "scatter_cache": scatter_cache,
    "conv_columns": conv_columns,
    "elementwise_activation": elementwise_activation,
}
"""Plain models first: the table of operators is made of the first ones that have an operator."""


@cache
def cases(family: str) -> tuple[Case, ...]:
    """The cases of a family, made once; nobody changes them."""
    return tuple(case for generator in FAMILIES[family].ALL for case in generator())


def newest_cases(cases: Iterable[Case]) -> tuple[Case, ...]:
    """One of each that differs in more than its opset or its symbols: that of the newest opset."""
    newest: dict[str, tuple[int, Case]] = {}
    for case in cases:
        found = re.fullmatch(r"(.*)-(\d+)-(?:fixed|T)", case[0])
        name, opset = (found[1], int(found[2])) if found else (case[0], 0)
        if name not in newest or newest[name][0] < opset:
            newest[name] = opset, case
    return tuple(case for _, case in newest.values())


@cache
def all_cases() -> tuple[Case, ...]:
    """The cases of all families."""
    return tuple(case for family in FAMILIES for case in cases(family))
