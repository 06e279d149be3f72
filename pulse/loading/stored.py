"""Program files as ``pulse.load`` returns them, without importing the readers of models."""

from collections.abc import Sequence

from pulse.chunks.chunking import Chunking
from pulse.errors import LoadError
from pulse.loading.loaded import Loaded
from pulse.program.file.stored_program import StoredProgram


def load_program(
    program: StoredProgram,
    outputs: Sequence[str] | None,
    symbol: str | None,
    chunking: Chunking | None,
    *more: object,
) -> Loaded:
    """Open a program file. Raises LoadError if options for reading a model are given."""
    states = chunking is not None and (chunking.is_chunked or chunking.states is not None)
    if any((outputs, symbol, states, *more)):
        raise LoadError(
            f"{program.model.title}: is a program; the options for reading its model are fixed: omit them, or "
            f"compile the model with them"
        )
    return Loaded(program)
