"""Tensors that the steps of a loop write frames to, and whatever else could read or change their elements.

Steps write to a copy, and the tensor itself changes after the last one. Between the first write and the last, another
reader of the tensor or of a view of it would see old values, and another writer would be lost: such loops are refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pulse.torch.replacements.loop_steps import EXPORTED_STEPS, FrameLoop, LoopStep

OTHER_USE = (
    "a tensor to which it writes frames is read or changed otherwise than by its frames, as y[:, t] is"
)
CHANGED_FRAME = (
    "a frame that it takes or writes is changed in place; compute a new one, as in h = h.clamp(-1, 1)"
)
REPLACED_FRAME = "a frame is used after its step has replaced it; copy it first, as in y[:, t].clone()"

_READ_NO_ELEMENTS = {
    *("size", "dim", "ndimension", "numel", "stride", "type", "element_size", "get_device", "__len__"),
    *("is_contiguous", "is_complex", "is_floating_point"),
    *("new_zeros", "new_ones", "new_empty", "new_full", "zeros_like", "ones_like", "empty_like", "full_like"),
}
"""Functions that read only the type or the shape of their operands."""
_LIKE_ANOTHER = {"type_as", "expand_as", "view_as", "reshape_as", "to"}
"""Functions that read only the type or the shape of what comes after their first argument."""
_VIEWS = {"T", "mT", "H", "mH", "data", "real", "imag"}
"""Attributes that are views of a tensor."""


@dataclass
class WrittenFrames:
    """A tensor to which the steps of a loop write their frames.

    tensor      the tensor
    loop_index  the index of the loop
    axis        the axis of the frames
    first       the position of the first step's frame
    before      its contents before the loop
    later       its frames from the first step's one on, as far as they are written
    version     the version in which the loop has left the tensor
    is_pending  whether steps still write
    values      what was written, by position
    parts       what steps have written that are several positions apart, by the position of the first step
    """

    tensor: Any
    loop_index: int
    axis: int
    first: int
    before: Any
    later: Any
    version: int
    is_pending: bool = True
    values: dict[int, Any] = field(default_factory=dict[int, Any])
    parts: dict[int, list[Any]] = field(default_factory=dict[int, list[Any]])


class LoopBuffers:
    """The tensors of an export to which loops write.

    failures  loop index -> why the loop cannot be exported
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._written: dict[int, WrittenFrames] = {}
        self._sources: list[tuple[int, Any]] = []
        self._frames: list[tuple[int, Any, int]] = []
        self._taken: dict[tuple[int, int], list[Any]] = {}
        self._replaced: list[tuple[int, Any]] = []
        self.failures: dict[int, str] = {}

    def find(self, x: Any, loop: FrameLoop) -> WrittenFrames | None:
        """Return what a loop has written to a tensor; None if it has not, or if it has changed since the loop."""
        written = self._written.get(id(x))
        if written is None or written.loop_index != loop.loop_index:
            return None
        if x._version == written.version:
            return written
        if written.is_pending:
            self._fail(written.loop_index, OTHER_USE)
        return None

    def begin(self, written: WrittenFrames) -> None:
        """Take up a tensor to which a first frame is written."""
        for loop_index, source in self._sources:
            if source is not written.tensor and self._share_elements(source, written.tensor):
                self._fail(loop_index, OTHER_USE)
        self._written[id(written.tensor)] = written

    def finish(self, written: WrittenFrames) -> None:
        """Note that the tensor has all frames."""
        written.is_pending = False
        written.version = written.tensor._version

    def keep_part(self, y: Any, step: LoopStep, axis: int, value: Any) -> list[Any]:
        """Remember what a step writes to a tensor whose steps are several positions apart; return that of all steps."""
        written = self.find(y, step.loop)
        if written is None:
            written = WrittenFrames(y, step.loop.loop_index, axis, step.offset, y, y, y._version)
            self.begin(written)
        self._frames.append((step.loop.loop_index, value, value._version))
        frames = written.parts.setdefault(step.offset, [])
        frames.append(value)
        return frames

    def finish_part(self, y: Any, step: LoopStep) -> None:
        """Note that the tensor has all frames of a part."""
        written = self._written[id(y)]
        written.version = y._version
        written.is_pending = any(len(frames) < EXPORTED_STEPS for frames in written.parts.values())

    def keep_frame(self, x: Any, step: LoopStep, frame: Any) -> None:
        """Remember a frame that a step takes from a tensor, or writes to it."""
        loop_index = step.loop.loop_index
        self._sources.append((loop_index, x))
        self._frames.append((loop_index, frame, frame._version))
        self._taken.setdefault((id(x), +step), []).append(frame)
        for written in self._find_pending():
            if (
                written.tensor is not x
                and written.before is not x
                and self._share_elements(written.tensor, x)
            ):
                self._fail(loop_index, OTHER_USE)

    def replace_frame(self, x: Any, step: LoopStep, value: Any) -> None:
        """Remember that a step replaces the frame at its position: those taken there are views of the new one."""
        taken = self._taken.pop((id(x), +step), [])
        self._replaced += [(step.loop.loop_index, frame) for frame in taken]
        self.keep_frame(x, step, value)

    def check_frames(self, operands: Iterable[Any]) -> None:
        """Note the loop that uses a frame after replacing it, as an operand of any function."""
        for operand in operands if self._replaced else ():
            for loop_index, frame in self._replaced:
                if operand is frame:
                    self._fail(loop_index, REPLACED_FRAME)

    def check_call(self, function: Any, operands: Iterable[Any], first: Any) -> None:
        """Note the loops that are still writing to an operand of a function other than a read or a write of a frame."""
        pending = self._find_pending()
        if not pending:
            return
        name = getattr(function, "__name__", "")
        if name in _READ_NO_ELEMENTS or (name == "__get__" and function.__self__.__name__ not in _VIEWS):
            return
        for operand in operands:
            if not self._torch.is_tensor(operand) or (name in _LIKE_ANOTHER and operand is not first):
                continue
            for written in pending:
                if self._share_elements(operand, written.tensor):
                    self._fail(written.loop_index, OTHER_USE)

    def check_changes(self) -> None:
        """Note the loops of which a frame has been changed in place."""
        with self._torch._C.DisableTorchFunction():
            for loop_index, frame, version in self._frames:
                if frame._version != version:
                    self._fail(loop_index, CHANGED_FRAME)

    def _find_pending(self) -> list[WrittenFrames]:
        return [written for written in self._written.values() if written.is_pending]

    def _share_elements(self, left: Any, right: Any) -> bool:
        return self._torch._C._is_alias_of(left, right)

    def _fail(self, loop_index: int, reason: str) -> None:
        self.failures.setdefault(loop_index, reason)
