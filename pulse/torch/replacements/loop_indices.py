"""The entries of an index in a step of a loop, as in ``x[:, t]``, ``x[..., t : t + 1, :]`` and ``y[:, t : t + 3]``."""

from collections.abc import Sequence
from typing import Any

from pulse.torch.replacements.loop_steps import LoopStep


def entries_of_axes(entries: Any) -> list[Any]:
    """Return the entries of an index that do not add an axis."""
    return [entry for entry in entries if entry is not None]


def is_whole_axis(entry: Any) -> bool:
    """Return whether an entry of an index takes whole axes; arrays are not compared."""
    return entry is ... or (isinstance(entry, slice) and entry == slice(None))


def steps_of(entry: Any) -> Sequence[LoopStep]:
    """Return the positions that an entry takes: the step itself, or a slice from it on; none if it has no step."""
    match entry:
        case LoopStep():
            return [entry]
        case slice(start=LoopStep() as start, stop=LoopStep() as stop, step=None | 1) if (
            stop.loop is start.loop and stop.rate == start.rate
        ):
            positions = range(start.value, stop.value)
            return [LoopStep.of(start.loop, start.index, position, start.rate) for position in positions]
        case _:
            return []


def selected_axis(x: Any, entries: list[Any], place: int) -> int | None:
    """Return the axis that an entry of an index selects from; None if other entries select by their values."""
    if not all(
        isinstance(entry, int | slice | LoopStep) or entry is None or entry is ... for entry in entries
    ):
        return None
    before, after = entries_of_axes(entries[:place]), entries_of_axes(entries[place:])
    return x.dim() - len(after) if ... in before else len(before)
