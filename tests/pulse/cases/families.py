"""Every family of operator cases."""

from collections.abc import Iterator
from functools import cache
from types import ModuleType

from tests.pulse.cases import (
    attention,
    composed,
    control,
    conv,
    einsum,
    elementwise,
    matrix,
    quantize,
    recurrent,
    resize,
    scan,
    scatter,
    search,
    sequence,
    shape,
    spectral,
)
from tests.pulse.cases.build import Case

FAMILIES: dict[str, ModuleType] = {
    "elementwise": elementwise,
    "conv": conv,
    "shape": shape,
    "matrix": matrix,
    "recurrent": recurrent,
    "scan": scan,
    "spectral": spectral,
    "resize": resize,
    "search": search,
    "attention": attention,
    "scatter": scatter,
    "einsum": einsum,
    "quantize": quantize,
    "control": control,
    "sequence": sequence,
    "composed": composed,
}


def cases(family: str) -> Iterator[Case]:
    """The cases of a family."""
    for generator in FAMILIES[family].ALL:
        yield from generator()


@cache
def all_cases() -> tuple[Case, ...]:
    """Those of all families."""
    return tuple(case for family in FAMILIES for case in cases(family))
