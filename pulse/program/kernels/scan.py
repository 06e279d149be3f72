"""The states that the body of a scan carries from frame to frame."""

from collections.abc import Iterator

from pulse.jit.language.raw import move_bytes
from pulse.jit.registry import kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.span import Reach, run


class KeepFrameRow(Instruction):
    """``state[:bytes] = new[:bytes]`` if the frame belongs to the stream: ``0 <= clock*P + i - offset < end``."""

    new: Operand = reads(None)
    state: Operand = writes(None)
    clock: Operand = reads("i64", 1)
    end: Operand = reads("i64", 1)
    P: int
    i: int
    offset: int
    bytes: int

    def touched_bytes(self) -> dict[str, int]:
        return {"new": self.bytes, "state": self.bytes}

    def reaches(self) -> Iterator[Reach]:
        yield self.new, run(self.bytes)
        yield self.state, run(self.bytes)


@kernel
def keep_frame(row: KeepFrameRow) -> None:
    frame = row.clock[0] * row.P + row.i - row.offset
    if 0 <= frame < row.end[0]:
        move_bytes(row.state, row.new, row.bytes)
