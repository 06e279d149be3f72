"""Every family of operator cases."""

from collections.abc import Iterator
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


def cases(family: str) -> Iterator[Case]:
    """The cases of a family."""
    for generator in FAMILIES[family].ALL:
        yield from generator()


@cache
def all_cases() -> tuple[Case, ...]:
    """Those of all families."""
    return tuple(case for family in FAMILIES for case in cases(family))
