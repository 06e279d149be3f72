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
    "attention": attention,
    "attention_linear": attention_linear,
    "attention_rotary": attention_rotary,
    "concat": concat,
    "control": control,
    "conv": conv,
    "conv_causal": conv_causal,
    "conv_columns": conv_columns,
    "cumulative": cumulative,
    "elementwise": elementwise,
    "elementwise_activation": elementwise_activation,
    "elementwise_bits": elementwise_bits,
    "gather": gather,
    "matmul": matmul,
    "matmul_einsum": matmul_einsum,
    "norm": norm,
    "pad": pad,
    "pool": pool,
    "quantize": quantize,
    "recurrent": recurrent,
    "reduce": reduce,
    "resize": resize,
    "scan": scan,
    "scatter": scatter,
    "scatter_cache": scatter_cache,
    "search": search,
    "shape": shape,
    "shape_arithmetic": shape_arithmetic,
    "shape_shuffle": shape_shuffle,
    "slice": slice,
    "source": source,
    "spectral": spectral,
}


def cases(family: str) -> Iterator[Case]:
    """The cases of a family."""
    for generator in FAMILIES[family].ALL:
        yield from generator()


@cache
def all_cases() -> tuple[Case, ...]:
    """Those of all families."""
    return tuple(case for family in FAMILIES for case in cases(family))
