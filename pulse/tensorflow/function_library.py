"""The functions of a GraphDef, read on first use."""

from collections.abc import Sequence

from pulse.errors import LoadError
from pulse.tensorflow.graph_node import OUTPUT_NAMES, LibraryFunction, read_function
from pulse.tensorflow.messages import Proto
from pulse.tensorflow.own_operators import OWN_OPERATORS
from pulse.tensorflow.tensors import FunctionName


class FunctionLibrary:
    """Functions by name."""

    def __init__(self, protos: Sequence[Proto]) -> None:
        self._protos = {proto.signature.name: proto for proto in protos}
        self._functions: dict[str, LibraryFunction] = {}
        self._added: dict[str, LibraryFunction] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._protos or name in self._added

    def add(self, function: LibraryFunction) -> FunctionName:
        """Add a function, such as the body of a loop that was written as single nodes. Returns its name."""
        self._added[function.name] = function
        return FunctionName(function.name, {})

    def find(self, function_name: FunctionName) -> LibraryFunction:
        """Return a function, which is read at the first call. Raises LoadError: no function has this name."""
        if function_name.name in self._added:
            return self._added[function_name.name]
        proto = self._protos.get(function_name.name)
        if proto is None:
            raise LoadError(
                f"function {function_name.name}: the file does not define it; export the model again"
            )
        if function_name.attributes:
            return read_function(proto, function_name.attributes, _output_names())
        if function_name.name not in self._functions:
            self._functions[function_name.name] = read_function(proto, {}, _output_names())
        return self._functions[function_name.name]


def _output_names() -> dict[str, tuple[str, ...]]:
    """Return the names of outputs of operators, with those of the user's own operators."""
    return {**OUTPUT_NAMES, **{name: operator.output_names for name, operator in OWN_OPERATORS.items()}}
