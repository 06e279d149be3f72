"""Elementwise functions, normalisations, dense and recurrent layers, and operators that move elements."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from pulse.build.first_parameters import bias_parameter, constant_parameter, parameter
from pulse.build.nodes import GraphView, Node
from pulse.build.operators import OperatorInput, make_node, operator_function
from pulse.build.structure import Sequential
from pulse.errors import InputError
from pulse.ops.recurrent_gates import GATE_COUNTS
from pulse.ops.recurrent_layers import CELL_KINDS
from pulse.support.naming import require_name
from pulse.support.wording import count_of


class OperatorFunction(Protocol):
    """A function that makes a node without parameters."""

    def __call__(self, name: str = "") -> Node: ...


def _operator(title: str, op_type: str, inputs: Sequence[OperatorInput], about: str) -> OperatorFunction:
    def make(name: str = "") -> Node:
        return make_node(op_type, inputs, name)

    make.__name__ = make.__qualname__ = title
    make.__doc__ = about
    return make


# elementwise

Sigmoid = _operator("Sigmoid", "Sigmoid", ["x"], "1 / (1 + exp(-x)).")
ReLU = _operator("ReLU", "Relu", ["x"], "max(x, 0).")
HardSwish = _operator("HardSwish", "HardSwish", ["x"], "``x min(max(x/6 + 1/2, 0), 1)``.")
Softplus = _operator("Softplus", "Softplus", ["x"], "log(1 + exp(x)).")
Tanh = _operator("Tanh", "Tanh", ["x"], "The hyperbolic tangent.")
Identity = _operator("Identity", "Identity", ["x"], "The input itself.")


def ELU(alpha: float = 1.0, name: str = "") -> Node:
    """x, and alpha (exp(x) - 1) below 0."""
    return make_node("Elu", ["x"], name, alpha=alpha)


def GELU(approximate: str = "none", name: str = "") -> Node:
    """``x Φ(x)``; ``approximate="tanh"`` takes the usual approximation of Φ."""
    return make_node("Gelu", ["x"], name, approximate=approximate)


def LeakyReLU(negative_slope: float = 0.01, name: str = "") -> Node:
    """x, and negative_slope x below 0."""
    return make_node("LeakyRelu", ["x"], name, alpha=negative_slope)


def PReLU(nb_channels: int, rank: int, name: str = "", *, slope: Any = None) -> Node:
    """x, and slope x below 0: a slope for each channel of x [N, C, ...] with ``rank`` axes; 0.25 by default."""
    location = f"{name or 'prelu'} (PRelu)"
    label, array = constant_parameter("slope", slope, nb_channels, 0.25, location)
    return make_node("PRelu", ["x", (label, array.reshape(-1, *[1] * (rank - 2)))], name)


def Dropout(probability: float = 0.5, name: str = "", *, training: bool = False) -> Node:
    """The input itself, as in inference. Raises InputError: training, which pulse does not do."""
    if training:
        raise InputError(
            f"{name or 'dropout'} (Dropout): pulse runs models and does not train them; omit training"
        )
    if not 0 <= probability < 1:
        raise InputError(
            f"{name or 'dropout'} (Dropout): the probability {probability} must be at least 0 and less than 1"
        )
    return make_node("Dropout", ["x"], name)


# two inputs

Add = _operator("Add", "Add", ["a", "b"], "``a + b``, sizes of 1 repeated.")
Sub = _operator("Sub", "Sub", ["a", "b"], "``a - b``, sizes of 1 repeated.")
Mul = _operator("Mul", "Mul", ["a", "b"], "``a b``, sizes of 1 repeated.")
Div = _operator("Div", "Div", ["a", "b"], "``a / b``, sizes of 1 repeated.")
Pow = _operator("Pow", "Pow", ["a", "b"], "``a ** b``, sizes of 1 repeated.")
MatMul = _operator("MatMul", "MatMul", ["a", "b"], "The matrix product of a [..., M, K] and b [..., K, N].")


def FC(
    in_channels: int,
    out_channels: int,
    name: str = "",
    *,
    no_bias: bool = False,
    weight: Any = None,
    bias: Any = None,
    seed: int = 0,
) -> GraphView:
    """A dense layer on the last axis of x [..., in]: a product, plus a bias if given.

    weight, bias  arrays [in, out] and [out]; random numbers of ``seed`` by default
    Raises        InputError: sizes that do not fit
    """
    location = f"{name or 'fc'} (FC)"
    w = parameter("weight", weight, [in_channels, out_channels], in_channels, seed, location)
    biases = bias_parameter(no_bias, bias, [out_channels], in_channels, seed, location)
    product = make_node("MatMul", ["x", w], name or "fc")
    return Sequential([product, *(make_node("Add", ["x", b], f"{name or 'fc'}.sum") for b in biases)])


# normalisations


def BatchNorm1D(
    nb_features: int,
    epsilon: float = 1e-5,
    name: str = "",
    *,
    scale: Any = None,
    shift: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Node:
    """``scale (x - mean) / sqrt(variance + epsilon) + shift`` of x [N, C, ...], a number for each channel.

    By default the scales and variances are 1, the shifts and means 0. Raises InputError: arrays that are not [C]
    """
    location = f"{name or 'batchnormalization'} (BatchNormalization)"
    tensors = {"scale": (scale, 1.0), "shift": (shift, 0.0), "mean": (mean, 0.0), "variance": (variance, 1.0)}
    parameters = [
        constant_parameter(label, value, nb_features, fill, location)
        for label, (value, fill) in tensors.items()
    ]
    return make_node("BatchNormalization", ["x", *parameters], name, epsilon=epsilon)


BatchNorm2D = BatchNorm3D = BatchNorm1D


def LayerNorm(
    shape: Sequence[int], epsilon: float = 1e-5, name: str = "", *, scale: Any = None, shift: Any = None
) -> Node:
    """``scale (x - mean) / sqrt(variance + epsilon) + shift`` over the last axes, which have this shape."""
    location = f"{name or 'layernormalization'} (LayerNormalization)"
    ones, zeros = np.ones(shape, np.float32), np.zeros(shape, np.float32)
    parameters = [
        parameter("scale", ones if scale is None else scale, shape, 1, 0, location),
        parameter("shift", zeros if shift is None else shift, shape, 1, 0, location),
    ]
    return make_node("LayerNormalization", ["x", *parameters], name, axis=-len(shape), epsilon=epsilon)


def Softmax(axis: int = -1, name: str = "") -> Node:
    """exp(x) over its sum along an axis."""
    return make_node("Softmax", ["x"], name, axis=axis)


def Softmin(axis: int = -1, name: str = "") -> GraphView:
    """The softmax of -x along an axis."""
    node_name = name or "softmin"
    return Sequential(
        [make_node("Neg", ["x"], f"{node_name}.neg"), make_node("Softmax", ["x"], node_name, axis=axis)]
    )


# recurrent layers


def _recurrent(
    op_type: str,
    attributes: Mapping[str, Any],
    in_channels: int,
    hidden_channels: int,
    name: str = "",
    *,
    no_bias: bool = False,
    direction: str = "forward",
    batch_first: bool = False,
    states: bool = False,
    weight: Any = None,
    recurrence: Any = None,
    bias: Any = None,
    seed: int = 0,
) -> Node:
    location = f"{name or op_type.lower()} ({op_type})"
    require_name("direction", direction, ("forward", "reverse", "bidirectional"), InputError, location)
    directions = 2 if direction == "bidirectional" else 1
    rows = GATE_COUNTS[CELL_KINDS[op_type]] * hidden_channels
    tensors = {"weight": (weight, in_channels), "recurrence": (recurrence, hidden_channels)}
    parameters = [
        parameter(label, value, [directions, rows, columns], hidden_channels, seed, location)
        for label, (value, columns) in tensors.items()
    ]
    biases = bias_parameter(no_bias, bias, [directions, 2 * rows], hidden_channels, seed, location)
    outputs = (3 if op_type == "LSTM" else 2) if states else 1
    return make_node(
        op_type,
        ["x", *parameters, *biases],
        name,
        outputs,
        hidden_size=hidden_channels,
        direction=direction,
        layout=int(batch_first),
        **attributes,
    )


RNN = operator_function(
    partial(_recurrent, "RNN", {}),
    "RNN",
    """Elman's recurrent layer, h[t] = tanh(w x[t] + r h[t-1] + b), of x [T, N, in] -> y [T, D, N, hidden].

    batch_first   x is [N, T, in], y [N, T, D, hidden]
    direction     ``forward``, ``reverse`` or ``bidirectional``, which has D = 2 directions; only forward ones stream
    states        its last state is a second output [D, N, hidden] ([N, D, hidden]); of an LSTM its cell a third one
    weight, recurrence, bias  arrays [D, G hidden, in], [D, G hidden, hidden] and [D, 2 G hidden] with G gates (RNN 1,
                  GRU 3: z r h, LSTM 4: i o f c); random numbers of ``seed`` if they are left out
    Raises        InputError: sizes that do not fit
    """,
)
LSTM = operator_function(
    partial(_recurrent, "LSTM", {}), "LSTM", "A long short-term memory; its parameters are those of ``RNN``."
)


def GRU(
    in_channels: int,
    hidden_channels: int,
    name: str = "",
    *,
    linear_before_reset: bool = True,
    no_bias: bool = False,
    direction: str = "forward",
    batch_first: bool = False,
    states: bool = False,
    weight: Any = None,
    recurrence: Any = None,
    bias: Any = None,
    seed: int = 0,
) -> Node:
    """A gated recurrent unit; its parameters are those of ``RNN``.

    linear_before_reset  the reset gate follows the product with the state, as in PyTorch
    """
    return _recurrent(
        "GRU",
        {"linear_before_reset": int(linear_before_reset)},
        in_channels,
        hidden_channels,
        name,
        no_bias=no_bias,
        direction=direction,
        batch_first=batch_first,
        states=states,
        weight=weight,
        recurrence=recurrence,
        bias=bias,
        seed=seed,
    )


# operators that move elements


def Concat(nb_inputs: int, axis: int, name: str = "") -> Node:
    """Its inputs joined along an axis."""
    if nb_inputs < 1:
        raise InputError(f"{name or 'concat'} (Concat): it needs at least one input")
    return make_node("Concat", [f"x{index}" for index in range(nb_inputs)], name, axis=axis)


def _numbers(label: str, values: Sequence[int], location: str) -> tuple[str, Any]:
    try:
        array = np.array([int(value) for value in values], np.int64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{location}: {label} must be integers, not {values!r}") from None
    return label, array


def Split(sizes: Sequence[int], axis: int, name: str = "") -> Node:
    """Parts of these sizes along an axis, an output for each."""
    location = f"{name or 'split'} (Split)"
    return make_node("Split", ["x", _numbers("sizes", sizes, location)], name, len(sizes), axis=axis)


def Slice(
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int],
    steps: Sequence[int] | None = None,
    name: str = "",
) -> Node:
    """Positions start .. end - 1 of each of the axes; numbers below 0 count from the end."""
    location = f"{name or 'slice'} (Slice)"
    parameters = {
        "starts": starts,
        "ends": ends,
        "axes": axes,
        "steps": [1] * len(axes) if steps is None else steps,
    }
    if len({len(values) for values in parameters.values()}) != 1:
        raise InputError(f"{location}: starts, ends, axes and steps need one number for each axis")
    return make_node(
        "Slice", ["x", *(_numbers(label, values, location) for label, values in parameters.items())], name
    )


def Transpose(output_dims_order: Sequence[int], name: str = "") -> Node:
    """The axes in another order."""
    return make_node("Transpose", ["x"], name, perm=list(output_dims_order))


def Reshape(shape: Sequence[int], name: str = "") -> Node:
    """The elements in another shape; 0 keeps a size, -1 (once) is the remaining size."""
    return make_node("Reshape", ["x", _numbers("shape", shape, f"{name or 'reshape'} (Reshape)")], name)


def Unsqueeze(axes: Sequence[int], name: str = "") -> Node:
    """New axes of size 1."""
    return make_node("Unsqueeze", ["x", _numbers("axes", axes, f"{name or 'unsqueeze'} (Unsqueeze)")], name)


def Squeeze(axes: Sequence[int], name: str = "") -> Node:
    """Remove axes of size 1."""
    return make_node("Squeeze", ["x", _numbers("axes", axes, f"{name or 'squeeze'} (Squeeze)")], name)


def Pad(pads: Sequence[int], axes: Sequence[int], name: str = "", *, mode: str = "constant") -> Node:
    """Pad the ends of axes: all amounts before, then all after.

    mode   ``constant`` (zeros), ``edge`` or ``reflect``
    """
    location = f"{name or 'pad'} (Pad)"
    if len(pads) != 2 * len(axes):
        raise InputError(
            f"{location}: {count_of(len(pads), 'pad')} for {count_of(len(axes), 'axis', 'axes')}; give two for each"
        )
    inputs: list[OperatorInput] = [
        "x",
        _numbers("pads", pads, location),
        None,
        _numbers("axes", axes, location),
    ]
    return make_node("Pad", inputs, name, mode=mode)


def ReduceMean(axes: Sequence[int], name: str = "", *, keepdims: bool = True) -> Node:
    """The mean over axes."""
    location = f"{name or 'reducemean'} (ReduceMean)"
    return make_node("ReduceMean", ["x", _numbers("axes", axes, location)], name, keepdims=int(keepdims))
