"""The recurrent layers of ONNX: their cells, their activations, and the weights of cuDNN in their order."""

from collections.abc import Mapping, Sequence
from typing import Any

from pulse.ops.recurrent_cells import ACTIVATION_DEFAULTS, Activation
from pulse.ops.recurrent_gates import CellKind
from pulse.support.record import record

CELL_KINDS: Mapping[str, CellKind] = {"RNN": "rnn", "GRU": "gru", "LSTM": "lstm"}
"""Operator -> its cell."""

ONNX_ACTIVATIONS = {name: name.title().replace("_", "") for name in ACTIVATION_DEFAULTS}
"""Activation -> its name in ONNX, such as LeakyRelu."""
_BY_LOWER_CASE = {spelling.lower(): name for name, spelling in ONNX_ACTIVATIONS.items()}


def read_activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> list[Activation]:
    """Return the activations of a node. Each that has a parameter takes the next one of the list, or its default.

    Raises KeyError: an activation that ONNX does not have
    """
    lists = list(alphas), list(betas)
    activations: list[Activation] = []
    for name in names:
        function = _BY_LOWER_CASE.get(name.lower())
        if function is None:
            raise KeyError(name)
        defaults = ACTIVATION_DEFAULTS[function].values()
        values = [
            parameters.pop(0) if parameters else default for parameters, default in zip(lists, defaults)
        ]
        activations.append(Activation(function, *values))
    return activations


@record
class CudnnCell:
    """A recurrent layer of cuDNN as one of ONNX.

    gates       the index in cuDNN's weights of each gate of ONNX
    activation  of all cells; None: the default of the operator
    """

    operator: str
    gates: tuple[int, ...]
    activation: str | None = None

    def attributes(self, hidden: int, directions: int) -> dict[str, Any]:
        """Return the attributes of a node with this many units in each direction."""
        attributes: dict[str, Any] = {"hidden_size": hidden}
        if directions == 2:
            attributes["direction"] = "bidirectional"
        if self.operator == "GRU":
            attributes["linear_before_reset"] = 1
        if self.activation is not None:
            attributes["activations"] = [self.activation] * directions
        return attributes


CUDNN_CELLS: Mapping[str, CudnnCell] = {
    "gru": CudnnCell("GRU", (1, 0, 2)),
    "lstm": CudnnCell("LSTM", (0, 3, 1, 2)),
    "rnn_tanh": CudnnCell("RNN", (0,)),
    "rnn_relu": CudnnCell("RNN", (0,), "Relu"),
}
"""The layers of cuDNN, by its names, which are those of PyTorch's functions too."""
