"""Loops over frames in a module's code, and the positions of their steps."""

from typing import Any, NamedTuple

from pulse.torch.replacements.traced_ints import TracedInt

EXPORTED_STEPS = 8
"""Steps of a loop that are exported."""
LOOP_DOMAIN = "pulse.loops"
"""The domain of the marks: ``Frame`` is one frame, ``Stack`` joins frames, ``Store`` writes one to a tensor, and
``Step`` is the number of a step.
"""


STEP_ATTRIBUTE = "_pulse_loop_step"
"""The attribute of a tensor that has the loop and the step it depends on."""


class LoopStep(TracedInt):
    """The position of a frame in a step of a loop: an integer with the loop it belongs to, and the step's index."""

    loop: "FrameLoop"
    index: int

    @classmethod
    def of(cls, loop: "FrameLoop", index: int, position: int | None = None) -> "LoopStep":
        step = cls(loop.first + index if position is None else position)
        step.loop, step.index = loop, index
        return step

    def __add__(self, other: Any) -> Any:
        """Return a later position in the same step; a plain number if the other one is a size."""
        if _is_tensor(other):
            return NotImplemented
        return LoopStep.of(self.loop, self.index, +self + +other) if isinstance(other, int) else +self + other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if _is_tensor(other):
            return NotImplemented
        return LoopStep.of(self.loop, self.index, +self - +other) if isinstance(other, int) else +self - other

    def __rsub__(self, other: Any) -> Any:
        return NotImplemented if _is_tensor(other) else other - +self

    def __mul__(self, other: Any) -> Any:
        return NotImplemented if _is_tensor(other) else +self * other

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return NotImplemented if _is_tensor(other) else +self / other

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return NotImplemented if _is_tensor(other) or modulus is not None else (+self) ** other

    @property
    def offset(self) -> int:
        """How many positions it is after the index of the step; the same in all steps."""
        return +self - self.index


def _is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor, whose own operators then take the number of a step."""
    return hasattr(value, "layout")


class FrameLoop(NamedTuple):
    """A loop over frames.

    loop_index  the index of the loop among all loops
    frames      the number of frames, a size
    origin      the file and the line of the loop
    first       the position of the first step's frame: ``range(1, T)`` begins with frame 1
    """

    loop_index: int
    frames: Any
    origin: str
    first: int = 0
