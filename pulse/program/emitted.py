"""The rows of a program: as they are emitted, and what is reported of them."""

from collections.abc import Iterator

from pulse.jit.instruction import Instruction
from pulse.program.memory import Value
from pulse.record import record


@record
class Emitted:
    """An instruction of a program, and the node that it belongs to."""

    instruction: Instruction
    node: str
    op: str

    @property
    def kernel(self) -> str:
        """The name of the kernel that runs it."""
        return self.instruction.kernel_name

    @property
    def operands(self) -> Iterator[Value]:
        """The tensors that it touches."""
        return (value for _, _, value in self.instruction.operands() if isinstance(value, Value))
