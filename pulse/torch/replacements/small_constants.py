"""Keep constants that are nearly 0 or 1 in an export."""

import contextlib
import warnings
from collections.abc import Generator
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from pulse.errors import PulseWarning
from pulse.torch.replacements.attributes import replace_attributes

MATCHER = "onnxscript.rewriter._matcher"
"""The module whose ``math.isclose`` decides whether a constant matches a rewrite rule."""


@contextlib.contextmanager
def keep_small_constants() -> Generator[None]:
    """Within this context, an export drops only sums with exactly 0 and products with exactly 1.

    onnxscript takes constants within 1e-8 of 0, or 1e-5 of 1, for these numbers: it drops the epsilon of a
    norm, so that frames of silence become 0/0. Warns if this onnxscript has no such module.
    """
    try:
        matcher: Any = import_module(MATCHER)
    except ModuleNotFoundError:
        warnings.warn(
            f"onnxscript {version('onnxscript')} compares constants in a module that pulse does not know "
            f"({MATCHER}): an "
            "epsilon may be left out of the export; if frames of silence give NaN, install onnxscript 0.7",
            PulseWarning,
            stacklevel=2,
        )
        yield
        return
    with replace_attributes(matcher, math=SimpleNamespace(isclose=_are_equal)):
        yield


def _are_equal(value: object, other: object, **_: object) -> bool:
    return value == other
