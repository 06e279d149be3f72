"""The emitted instructions of a program."""

from collections.abc import Iterable, Iterator

from pulse.jit.registry import KERNELS
from pulse.jit.rows.instruction import Instruction, OperandTensor
from pulse.jit.rows.pointer import operand
from pulse.program.table.memory import TensorView
from pulse.program.table.place import Place
from pulse.program.table.table import RowTable, TableBuilder
from pulse.support.record import record


@record
class EmittedInstruction:
    """An instruction of a program, and its node."""

    instruction: Instruction
    node: str
    op: str

    @property
    def kernel(self) -> str:
        """The name of the kernel that runs it."""
        return self.instruction.kernel_name

    @property
    def operands(self) -> Iterator[TensorView]:
        """Yield the tensors that the instruction touches."""
        return (value for _, _, value in self.instruction.operands() if isinstance(value, TensorView))


def make_table(rows: Iterable[EmittedInstruction]) -> RowTable:
    """Make the unlinked table of instructions whose tensors have been placed."""
    builder = TableBuilder()
    for row in rows:
        words = [_encode_word(argument) for argument in row.instruction.arguments()]
        builder.add(KERNELS[row.kernel], *words)
    return builder.finish()


def _encode_word(argument: OperandTensor | int) -> int:
    if isinstance(argument, TensorView):
        place = Place.of(argument)
        return operand(place.region, place.offset)
    assert isinstance(argument, int)
    return argument
