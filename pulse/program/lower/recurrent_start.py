"""The common parts of recurrent layers: states before the first pulse, biases, the first fields of rows."""

from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.ops.recurrent_cells import Activation, Cell
from pulse.program.kernels.recurrent.gates import ACTIVATIONS
from pulse.program.kernels.recurrent.layer import ActivationFields
from pulse.program.lower.stream_state import StateTiming
from pulse.program.lowering import Lowering
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


def initial_states(lowering: Lowering, node: PulsedNode, op: RecurrentStream) -> tuple[list[Array], bool]:
    """Return the states before the first pulse, and whether the first pulse loads them from an input instead."""
    slots = [op.op.optional_slot(name) for name in ("h", "c")[: op.op.cell.state_count]]
    constants = [None if slot is None else lowering.known_value(node.inputs[slot]) for slot in slots]
    reload = op.past is None and any(
        slot is not None and value is None for slot, value in zip(slots, constants)
    )
    initial = op.initial_state()
    if op.past is None:
        initial = [zeros if value is None else zeros + value for zeros, value in zip(initial, constants)]
    return [np.ascontiguousarray(state) for state in initial], reload


def split_bias(cell: Cell, b: Array) -> tuple[Array, Array]:
    """Split ONNX's biases [2*G*H] into those that the projection adds [G*H] and those inside the recurrent product.

    The second is [H] for a GRU whose reset gate multiplies that product, since it multiplies this bias too; else [0].
    """
    half = len(b) // 2
    input_bias, recurrent_bias = b[:half], b[half:]
    if not cell.resets_product:
        return input_bias + recurrent_bias, b[:0]
    gates = half // 3 * 2
    projected = np.concatenate([input_bias[:gates] + recurrent_bias[:gates], input_bias[gates:]])
    return projected, np.ascontiguousarray(recurrent_bias[gates:])


def layer_of(node: PulsedNode) -> Recurrent:
    """Return the layer of a node, streaming or restarted in every pulse."""
    assert isinstance(node.op, Recurrent | RecurrentStream)
    return node.op if isinstance(node.op, Recurrent) else node.op.op


def frame_fields(
    lowering: Lowering,
    op: Recurrent,
    y: TensorView,
    h: TensorView,
    start: tuple[TensorView, int],
    times: StateTiming,
) -> dict[str, Any]:
    """Return the fields of ``RecurrentFields``, and the activations of the cell.

    start   an initial state, and its row stride in elements
    Raises  CompileError: an activation without a kernel
    """
    frames, batch, hidden = y.shape
    functions = [_activation(lowering, function) for function in op.cell.activations]
    return {
        "y": y,
        "h": h,
        "h0": start[0],
        **times.fields(),
        "T": frames,
        "B": batch,
        "H": hidden,
        "step_h0_row": start[1],
        "step_frame": y.strides[0],
        "step_row": y.strides[1],
        "clip": op.cell.clip or 0.0,
        **dict(zip(("f", "g", "out"), functions)),
    }


def _activation(lowering: Lowering, function: Activation) -> ActivationFields:
    """Return the fields of an activation. Raises CompileError: no kernel has it."""
    if function.name not in ACTIVATIONS:
        raise lowering.no_kernel(f"the activation {function}")
    code = ACTIVATIONS[function.name]
    return ActivationFields(code=code, alpha=function.alpha, beta=function.beta)
