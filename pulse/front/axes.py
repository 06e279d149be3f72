"""Changes of axes for the next model: add, remove or reorder axes."""

from collections.abc import Sequence

from pulse.dim import TDim
from pulse.front.builder import FunctionBuilder
from pulse.models import TypedModel

DEFAULT = "1,257,frames"


def unsqueeze(axis: int, shape: str = DEFAULT) -> TypedModel:
    """Insert an axis of size 1, as ``torch.unsqueeze``.

    Input    x [...]
    Output   y [...], with the new axis at ``axis``
    Raises   InputError: no such axis
    """
    builder = FunctionBuilder("unsqueeze", {"x": shape})
    return builder.model(y=builder.add_axis(builder["x"], builder.new_axis(builder["x"], axis)))


def squeeze(axis: int, shape: str = "1,1,257,frames") -> TypedModel:
    """Remove an axis of size 1, as ``torch.squeeze``.

    Input    x [...]
    Output   y [...], without ``axis``
    Raises   InputError: no such axis, or of another size
    """
    builder = FunctionBuilder("squeeze", {"x": shape})
    position = builder.axis(builder["x"], axis)
    if builder.shape(builder["x"])[position] != TDim.of(1):
        raise builder.error(f"axis {position} of {builder.text(builder['x'])!r} must have the size 1")
    return builder.model(y=builder.remove_axis(builder["x"], position))


def transpose(perm: Sequence[int], shape: str = DEFAULT) -> TypedModel:
    """Reorder the axes, as ``numpy.transpose``: axis j of the output is axis ``perm[j]`` of the input.

    Input    x [...]
    Output   y [...]
    Raises   InputError: perm is not an order of the axes
    """
    builder = FunctionBuilder("transpose", {"x": shape})
    axes = [builder.axis(builder["x"], axis) for axis in perm]
    if sorted(axes) != list(range(builder.rank(builder["x"]))):
        raise builder.error(f"perm={list(perm)} must have each axis of {builder.text(builder['x'])!r} once")
    return builder.model(y=builder.transpose(builder["x"], axes))
