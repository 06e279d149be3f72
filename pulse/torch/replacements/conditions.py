# pyright: basic
"""Truth values and numbers that a module takes out of tensors, if known before it runs."""

import dis
import sys
from types import FrameType
from typing import Any

CONVERSIONS = {"__bool__": bool, "item": lambda value: value, "__int__": int, "__float__": float}
"""Functions that convert the one element of a tensor to Python, by their names in PyTorch."""
_JUMPS = {"POP_JUMP_FORWARD_IF_TRUE": True, "POP_JUMP_IF_TRUE": True}
_JUMPS |= {"POP_JUMP_FORWARD_IF_FALSE": False, "POP_JUMP_IF_FALSE": False}
_BETWEEN = ("CACHE", "TO_BOOL", "NOT_TAKEN", "EXTENDED_ARG")


class KnownConditions:
    """The values of the buffers of one element that a module holds before an export.

    An exporter does not know what a tensor holds. A buffer is unknown once a call has written to it.
    """

    def __init__(self, torch: Any, module: Any) -> None:
        self._torch = torch
        self._values = [
            (submodule._buffers, name, value.detach().clone())
            for submodule in module.modules()
            for name, value in submodule._buffers.items()
            if torch.is_tensor(value) and value.numel() == 1
        ]

    def convert(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return the known result of one of CONVERSIONS, else None. Forgets a buffer that is written to."""
        if not args or not self._torch.is_tensor(args[0]):
            return None
        if name in CONVERSIONS:
            for buffers, key, value in self._values:
                if buffers.get(key) is args[0]:
                    return CONVERSIONS[name](value.item())
            return asserted_value(_caller()) if name in ("__bool__", "item") else None
        if name.endswith("_") and not name.endswith("__"):
            self._values = [known for known in self._values if known[0].get(known[1]) is not args[0]]
        return None


def _caller() -> FrameType | None:
    """Return the frame outside this package and of PyTorch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("pulse", "torch"):
        frame = frame.f_back
    return frame


def asserted_value(frame: FrameType | None) -> bool | None:
    """Return the truth value with which an ``assert`` of the frame's instruction passes; None: there is none."""
    if frame is None:
        return None
    steps = [step for step in dis.get_instructions(frame.f_code) if step.opname not in _BETWEEN]
    index = next((n for n, step in enumerate(steps) if step.offset >= frame.f_lasti), len(steps))
    jump = next((n for n in (index, index + 1) if n < len(steps) and steps[n].opname in _JUMPS), None)
    if jump is None:
        return None
    value = _JUMPS[steps[jump].opname]
    if _fails(steps[jump + 1]):
        return value
    target = next((step for step in steps if step.offset >= steps[jump].argval), None)
    return None if target is None or not _fails(target) else not value


def _fails(step: dis.Instruction) -> bool:
    """Return whether the instruction begins the failure of an ``assert``."""
    return step.opname == "LOAD_ASSERTION_ERROR" or step.argval is AssertionError
