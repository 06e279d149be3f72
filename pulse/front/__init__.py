"""Fronts and backs of audio models, as typed models: each exact to the reference that it is named after."""

from collections.abc import Callable

from pulse.front.framing import frames, overlap_add
from pulse.typed import TypedModel

__all__ = [
    "FUNCTIONS",
    "frames",
    "overlap_add",
]

FUNCTIONS: dict[str, Callable[..., TypedModel]] = {
    function.__name__: function
    for function in (
        frames,
        overlap_add,
    )
}
"""Every function of this package, by name."""
