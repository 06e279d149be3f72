"""ONNX operators as parts of nodes of other formats."""

from collections.abc import Sequence
from typing import Any

from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.infer.translators import wire_node
from pulse.onnx.operators import families as families
from pulse.onnx.registry import TRANSLATORS

OPSET = 13
"""The opset of the operators."""


def wire_onnx(
    node: NodeContext, op_type: str, inputs: Sequence[OutletId | None], suffix: str = "", **attributes: Any
) -> OutletId:
    """Wire an ONNX operator for a node, and return its first output.

    Raises LoadError, FactError: the inputs do not fit.
    """
    return wire_onnx_all(node, op_type, inputs, suffix, 1, **attributes)[0]


def wire_onnx_all(
    node: NodeContext,
    op_type: str,
    inputs: Sequence[OutletId | None],
    suffix: str,
    outputs: int,
    **attributes: Any,
) -> list[OutletId]:
    """Wire an ONNX operator with several outputs for a node. Raises LoadError, FactError: the inputs do not fit."""
    name = f"{node.wire_name}.{suffix}" if suffix else node.wire_name
    context = NodeContext(
        op_type=op_type,
        opset=OPSET,
        wire_name=name,
        attributes=attributes,
        inputs=tuple(inputs),
        outputs=(name, *(f"{name}:{slot}" for slot in range(1, outputs))),
        graph=node.graph,
        scope=node.scope,
    )
    return wire_node(TRANSLATORS[op_type], context)
