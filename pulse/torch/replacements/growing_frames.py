"""Tensors that grow by a frame in each step of a loop, ``y = torch.cat([y, frame], 1)``, and first frames that are
written before a loop, ``y[:, 0] = x[:, 0]``.
"""

from dataclasses import dataclass
from typing import Any


@dataclass
class GrownTensor:
    """A tensor to which the steps of a loop have joined frames.

    tensor  the tensor
    axis    the axis of the frames
    before  what the first step joins its frame to; None if it begins with its frame
    frames  the frames of the steps so far
    """

    tensor: Any
    axis: int
    before: Any
    frames: list[Any]


class GrowingFrames:
    """The tensors of an export that grow in loops."""

    def __init__(self) -> None:
        self._grown: dict[int, GrownTensor] = {}

    def find(self, tensor: Any) -> GrownTensor | None:
        """Return how a tensor has grown; None if it has not."""
        grown = self._grown.get(id(tensor))
        return grown if grown is not None and grown.tensor is tensor else None

    def grow(
        self, before: Any, frame: Any, axis: int, step: int, previous_step: int | None
    ) -> GrownTensor | None:
        """Return how the tensor of a step will have grown; None if it is not a part of a loop.

        previous_step  the step that ``before`` is a result of; None for another tensor
        """
        axis %= frame.dim()
        grown = self.find(before)
        if grown is not None and grown.axis == axis and len(grown.frames) == step:
            return GrownTensor(None, axis, grown.before, [*grown.frames, frame])
        if step == 0 and previous_step is None:
            return GrownTensor(None, axis, before, [frame])
        if step == 1 and previous_step == 0 and before.shape == frame.shape:
            return GrownTensor(None, axis, None, [before, frame])
        return None

    def keep(self, grown: GrownTensor, tensor: Any) -> None:
        """Remember the tensor that has grown."""
        grown.tensor = tensor
        self._grown[id(tensor)] = grown


class FirstFrames:
    """Frames that are written to a tensor at constant positions, as long as nothing else changes it."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[Any, int, dict[tuple[int, int], Any]]] = {}

    def write(self, tensor: Any, axis: int, position: int, frame: Any) -> None:
        """Remember a frame that is about to be written."""
        _, version, frames = self._written.get(id(tensor), (tensor, tensor._version, {}))
        known = frames if version == tensor._version else {}
        self._written[id(tensor)] = tensor, tensor._version + 1, {**known, (axis, position): frame}

    def find(self, tensor: Any, axis: int, position: int) -> Any:
        """Return the frame at a position; None if it is not known."""
        kept, version, frames = self._written.get(id(tensor), (None, 0, {}))
        return frames.get((axis, position)) if kept is tensor and version == tensor._version else None
