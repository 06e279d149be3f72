"""Tensors that grow by a frame in each step of a loop, ``y = torch.cat([y, frame], 1)``.

Also first frames that are written before a loop, ``y[:, 0] = x[:, 0]``.
"""

from dataclasses import dataclass
from typing import Any


@dataclass
class GrownTensor:
    """A tensor to which the steps of a loop have joined frames.

    axis    the axis of the frames
    before  what the first step joins its frame to; None if it begins with its frame
    frames  the frames of the steps so far
    """

    axis: int
    before: Any
    frames: list[Any]


class GrowingFrames:
    """The tensors of an export that grow in loops."""

    def __init__(self) -> None:
        self._grown: dict[int, GrownTensor] = {}
        self._last: dict[int, tuple[Any, int, int, Any]] = {}

    def find(self, tensor: Any) -> GrownTensor | None:
        """Return how a tensor has grown; None if it has not."""
        grown = self._grown.get(id(tensor))
        return grown if grown is not None and self.find_last(tensor) is not None else None

    def grow(
        self, before: Any, frame: Any, axis: int, step: int, previous_step: int | None
    ) -> GrownTensor | None:
        """Return how the tensor of a step will have grown; None if it is not a part of a loop.

        previous_step  the step that ``before`` is a result of; None for another tensor
        """
        axis %= frame.dim()
        grown = self.find(before)
        if grown is not None and grown.axis == axis and len(grown.frames) == step:
            return GrownTensor(axis, grown.before, [*grown.frames, frame])
        if step == 0 and previous_step is None:
            return GrownTensor(axis, before, [frame])
        if step == 1 and previous_step == 0 and before.shape == frame.shape:
            return GrownTensor(axis, None, [before, frame])
        return None

    def keep(self, grown: GrownTensor, tensor: Any) -> None:
        """Remember the tensor that has grown."""
        self._grown[id(tensor)] = grown
        self.keep_last(tensor, grown.axis, grown.frames[-1])

    def keep_last(self, tensor: Any, axis: int, frame: Any) -> None:
        """Remember the frame to which another tensor has just been joined."""
        self._last[id(tensor)] = tensor, tensor._version, axis, frame

    def find_last(self, tensor: Any) -> tuple[int, Any] | None:
        """Return the axis and the last frame of a tensor that was joined and not changed since; None for others."""
        kept, version, axis, frame = self._last.get(id(tensor), (None, 0, 0, None))
        return (axis, frame) if kept is tensor and version == tensor._version else None


class FirstFrames:
    """Frames that are written to a tensor at constant positions, as long as nothing else changes it."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[Any, int, dict[tuple[int, int], tuple[Any, int]]]] = {}

    def write(self, tensor: Any, axis: int, position: int, frame: Any) -> None:
        """Remember a frame that is about to be written."""
        _, version, frames = self._written.get(id(tensor), (tensor, tensor._version, {}))
        known = frames if version == tensor._version else {}
        self._written[id(tensor)] = (
            tensor,
            tensor._version + 1,
            {**known, (axis, position): (frame, frame._version)},
        )

    def find(self, tensor: Any, axis: int, position: int) -> Any:
        """Return the frame at a position; None if it is not known."""
        kept, version, frames = self._written.get(id(tensor), (None, 0, {}))
        frame, frame_version = frames.get((axis, position), (None, 0))
        if frame is None or kept is not tensor or version != tensor._version:
            return None
        return frame if frame_version == frame._version else None
