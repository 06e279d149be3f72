"""Raise exceptions between two Python instructions: KeyboardInterrupt at the n-th line or opcode of a call."""

import dis
import inspect
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, Literal

from tests.sources import ROOT

OURS = (f"{ROOT / 'pulse'}/", f"{ROOT / 'streaming'}/")
Unit = Literal["line", "opcode"]


def interrupt_call(call: Callable[[], object], unit: Unit, number: int) -> bool:
    """Make the call and raise KeyboardInterrupt before the ``number``-th line or opcode of pulse and streaming.

    Not before the opcode that returns from the call itself: from then on it changes nothing and looks at no signal.
    Returns  whether it had this many and was interrupted
    """
    if unit == "opcode" and sys.version_info >= (3, 12):
        return _interrupted_by_monitoring(call, number)
    calls_so_far = 0
    first: FrameType | None = None

    def trace_inner(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal calls_so_far
        if event == unit and not (unit == "opcode" and frame is first and _returns(frame)):
            calls_so_far += 1
            if calls_so_far == number:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace_inner

    def trace_call(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal first
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        first = first or frame
        frame.f_trace_opcodes = unit == "opcode"
        return trace_inner

    before = sys.gettrace()
    sys.settrace(trace_call)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def _interrupted_by_monitoring(call: Callable[[], object], number: int) -> bool:
    """The same before an opcode, if ``sys.monitoring`` is available: tracing leaves out opcodes since Python 3.13."""
    monitoring: Any = vars(sys)["monitoring"]
    tool, event = monitoring.DEBUGGER_ID, monitoring.events.INSTRUCTION
    calls_so_far = 0
    first: FrameType | None = None

    def before_opcode(code: CodeType, offset: int) -> Any:
        nonlocal calls_so_far, first
        if not code.co_filename.startswith(OURS):
            return monitoring.DISABLE
        frame = sys._getframe(1)
        first = first or frame
        name = dis.opname[code.co_code[offset]]
        if not (frame is first and name.startswith("RETURN_")) and not _closes_generator(code, name):
            calls_so_far += 1
            if calls_so_far == number:
                monitoring.set_events(tool, 0)
                raise KeyboardInterrupt
        return None

    monitoring.use_tool_id(tool, "interruption")
    monitoring.register_callback(tool, event, before_opcode)
    monitoring.set_events(tool, event)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
    return False


def everywhere(begin: Callable[[], Callable[[], object]], unit: Unit, step: int = 1) -> Iterator[int]:
    """Interrupt calls at one place after the other, from the first to the last; after each one, its number.

    begin  makes ready and gives the call
    """
    number = 1
    while interrupt_call(begin(), unit, number):
        yield number
        number += step


def _closes_generator(code: CodeType, name: str) -> bool:
    """Whether an opcode passes on the exception that ends a generator: what is raised there Python may ignore."""
    return bool(code.co_flags & inspect.CO_GENERATOR) and name in ("CALL_INTRINSIC_1", "RERAISE")


def _returns(frame: FrameType) -> bool:
    return dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN_")
