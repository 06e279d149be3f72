"""The frames that all steps of a loop take from a tensor, one each: those at a position, and windows from it on."""

from importlib import import_module
from typing import Any

from pulse.torch.replacements.loop_steps import FrameLoop, LoopStep

SHORT_WINDOW = (
    "it takes {width} frames in each step, every {rate} frames, of which the last step may have fewer; declare the "
    "length as a multiple, as in dynamic={{'x': {{1: '{rate}*T'}}}}, or end the loop with the last whole window, "
    "range(0, T - {before}, {rate})"
)
OVERLAPPING_PARTS = (
    "it writes {width} frames in each step, every {rate}, so that the parts of two steps overlap; append them to a "
    "list, and add them up after the loop: F.fold(torch.stack(parts, -1), (1, size), (1, {width}), stride=(1, {rate})) "
    "for parts [streams, {width}]; if later parts replace earlier ones, write only the first {rate} frames of each"
)


class StepFrames:
    """The tensors of an export whose frames the steps of loops take: one tensor for all steps of a loop."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._all_frames: dict[
            tuple[Any, ...], tuple[Any, Any]
        ] = {}  # by id and version, with the tensor itself

    def single_frames(self, x: Any, axis: int, step: LoopStep) -> Any:
        """Return x from the first step's position on, with a frame for each step; None if x does not have them.

        If steps are several frames apart, the last one may lack its frame: the Scan refuses such lengths.
        """
        if step.rate != 1:
            return self._spaced_frames(x, axis, step)
        longer = self.count_more(x, axis, step.loop)
        if longer is None or not 0 <= step.offset <= longer:
            return None
        return self._slice(x, axis, step.offset, step.offset - longer or None, 1)

    def windows(self, x: Any, axis: int, step: LoopStep, width: int) -> Any:
        """Return windows of x along a last axis, in place of the frames of ``axis``; None if x has too few.

        x      its axes and the axis of its frames
        step   the position of the first frame of a step's window
        width  frames of a window
        """
        size, loop, last_end = x.shape[axis], step.loop, None
        if step.offset < 0 or not isinstance(size, self._torch.SymInt):
            return None
        if not is_known_true((size - step.offset - width) // step.rate + 1 == loop.frames):
            last_end = _end_of_steps(step) - step.rate + width
            if not is_known_true(last_end <= size):
                loop.fail(SHORT_WINDOW.format(width=width, rate=step.rate, before=width - 1))
                return None
        key = id(x), axis, "windows", step.offset, step.rate, width, loop.loop_index, x._version
        if key not in self._all_frames:
            kept = self._slice(x, axis, step.offset, last_end, 1)
            self._all_frames[key] = x, kept.unfold(axis, width, step.rate)
        return self._all_frames[key][1]

    def from_position(self, x: Any, axis: int, first: int) -> Any:
        """Return x from a position on."""
        return self._slice(x, axis, first, None, 1)

    def copy(self, y: Any) -> Any:
        """Return a copy, of which steps take the same frames as those that the first step took before it wrote."""
        copy = y.clone()
        for key, (_, frames) in list(self._all_frames.items()):
            if (key[0], key[-1]) == (id(y), y._version):
                self._all_frames[id(copy), *key[1:-1], copy._version] = copy, frames
        return copy

    def count_more(self, x: Any, axis: int, loop: FrameLoop) -> int | None:
        """Return how many frames more a tensor has than a loop has steps; None if that depends on the length."""
        sizes = x.shape[axis], loop.frames
        if not all(isinstance(size, self._torch.SymInt) for size in sizes):
            return None
        hints = [size.node.hint for size in sizes]
        if None in hints:
            return None
        count = hints[0] - hints[1]
        return count if is_known_true(sizes[0] == loop.frames + count) else None

    def _spaced_frames(self, x: Any, axis: int, step: LoopStep) -> Any:
        if step.offset < 0 or not isinstance(x.shape[axis], self._torch.SymInt):
            return None
        return self._slice(x, axis, step.offset, self.end(x, axis, step), step.rate)

    def end(self, x: Any, axis: int, step: LoopStep) -> Any:
        """Return the end of the frames from a step's position on; None if it is that of the tensor."""
        size, loop, end = x.shape[axis], step.loop, _end_of_steps(step)
        beyond = loop.stop + step.offset - loop.first if step.rate == loop.step else end
        return None if is_known_true(end >= size) or is_known_true(beyond >= size) else end

    def takes_parts(self, y: Any, axis: int, step: LoopStep, width: int | None) -> bool:
        """Return whether steps write frames, or parts of ``width`` frames, to a tensor that do not overlap."""
        size, loop = y.shape[axis], step.loop
        if width is not None and width > step.rate:
            loop.fail(OVERLAPPING_PARTS.format(width=width, rate=step.rate))
        if step.offset < 0 or not isinstance(size, self._torch.SymInt) or width not in (None, step.rate):
            return False
        if width is not None and not is_known_true(_end_of_steps(step) <= size):
            loop.fail(SHORT_WINDOW.format(width=width, rate=step.rate, before=width - 1))
        return True

    def _slice(self, x: Any, axis: int, first: int, end: Any, spacing: int) -> Any:
        """Return x, or the one slice of it for all steps."""
        key = id(x), axis, first, str(end), spacing, x._version
        if key not in self._all_frames:
            is_whole, bounds = (first, end, spacing) == (0, None, 1), slice(first, end, spacing)
            self._all_frames[key] = x, x if is_whole else x[(*(slice(None),) * axis, bounds)].clone()
        return self._all_frames[key][1]


def _end_of_steps(step: LoopStep) -> Any:
    """Return the position that a step after the last one would have, as a size."""
    loop = step.loop
    if step.rate == loop.step and is_known_true((loop.stop - loop.first) % loop.step == 0):
        return loop.stop + step.offset - loop.first
    return step.offset + step.rate * loop.frames


def is_known_true(condition: Any) -> bool:
    """Return whether a condition on sizes holds for every length."""
    return import_module("torch.fx.experimental.symbolic_shapes").statically_known_true(condition)
