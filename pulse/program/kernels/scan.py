"""States that a body carries from frame to frame."""

from pulse.program.kernels.pointer import Bases, Row, i64, number, u8
from pulse.program.kernels.raw import move_bytes
from pulse.program.kernels.registry import kernel


@kernel
def keep_frame(row: Row, bases: Bases) -> None:
    """``state[:bytes] = new[:bytes]`` if the frame is of the stream: ``0 <= clock*P + i - offset < end``.

    Arguments: new, state, clock, end (operands), P, i, offset, bytes.
    """
    frame = i64(row, bases, 2)[0] * number(row, 4) + number(row, 5) - number(row, 6)
    if 0 <= frame < i64(row, bases, 3)[0]:
        move_bytes(u8(row, bases, 1), u8(row, bases, 0), number(row, 7))
