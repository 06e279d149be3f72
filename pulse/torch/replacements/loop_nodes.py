"""Nodes that are inserted into an exported graph, in which loops become Scans."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class NodeInserter:
    """Inserts nodes into a graph of ``onnx_ir``."""

    def __init__(self, ir: Any, graph: Any) -> None:
        self._ir, self._graph = ir, graph

    def constant(self, place: Any, value: Any, dtype: Any = np.int64) -> Any:
        """Insert a constant before ``place``; return its output."""
        attribute = self._ir.AttrTensor("value", self._ir.tensor(np.array(value, dtype)))
        node = self._ir.Node("", "Constant", [], attributes=[attribute])
        self._graph.insert_before(place, node)
        return node.outputs[0]

    def insert(
        self,
        place: Any,
        op_type: str,
        inputs: Sequence[Any],
        type_: Any,
        shape: Any = None,
        **attributes: int,
    ) -> Any:
        """Insert a node before ``place``; return its output."""
        listed = [self._ir.AttrInt64(name, value) for name, value in attributes.items()]
        node = self._ir.Node("", op_type, inputs, attributes=listed, num_outputs=1)
        node.outputs[0].type, node.outputs[0].shape = type_, shape
        self._graph.insert_before(place, node)
        return node.outputs[0]
