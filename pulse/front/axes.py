"""Changes of axes for the next model: add, remove or reorder axes."""

from collections.abc import Sequence

from pulse.dim import TDim
from pulse.front.draft import Draft
from pulse.models import TypedModel

DEFAULT = "1,257,frames"


def unsqueeze(axis: int, shape: str = DEFAULT) -> TypedModel:
    """A new axis of size 1, as ``torch.unsqueeze``.

    Input    x [...]
    Output   y [...], with the new axis at ``axis``
    Raises   InputError: no such axis
    """
    draft = Draft("unsqueeze", {"x": shape})
    rank = draft.rank(draft["x"])
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank - 1 <= axis <= rank:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise draft.error(f"axis={axis!r} must be from {-rank - 1} to {rank}")
    return draft.model(y=draft.with_axis(draft["x"], axis % (rank + 1)))


def squeeze(axis: int, shape: str = "1,1,257,frames") -> TypedModel:
    """x without an axis of size 1, as ``torch.squeeze``.

    Input    x [...]
    Output   y [...], without ``axis``
    Raises   InputError: no such axis, or of another size
    """
    draft = Draft("squeeze", {"x": shape})
    position = draft.axis(draft["x"], axis)
    if draft.shape(draft["x"])[position] != TDim.of(1):
        raise draft.error(f"axis {position} of {draft.text(draft['x'])!r} must have the size 1")
    return draft.model(y=draft.without_axis(draft["x"], position))


def transpose(perm: Sequence[int], shape: str = DEFAULT) -> TypedModel:
    """The axes in another order, as ``numpy.transpose``: axis j of the output is axis ``perm[j]`` of the input.

    Input    x [...]
    Output   y [...]
    Raises   InputError: perm is not an order of the axes
    """
    draft = Draft("transpose", {"x": shape})
    axes = [draft.axis(draft["x"], axis) for axis in perm]
    if sorted(axes) != list(range(draft.rank(draft["x"]))):
        raise draft.error(f"perm={list(perm)} must have each axis of {draft.text(draft['x'])!r} once")
    return draft.model(y=draft.transpose(draft["x"], axes))
