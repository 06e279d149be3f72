"""Nodes of a TensorFlow graph as ops of the analyser's graph."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from pulse.errors import LoadError
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.op import InferenceOp, short_text
from pulse.infer.relations import FactRelation
from pulse.infer.rules import DEFAULT
from pulse.infer.translators import wire_node
from pulse.infer.wire_facts import WireFacts
from pulse.onnx.registry import find_translator
from pulse.support.record import record
from pulse.tensorflow.node import FunctionModels, TensorflowNode
from pulse.tensorflow.operators import families as families
from pulse.tensorflow.registry import RULES, TRANSLATORS, own_name
from pulse.tensorflow.tensors import TensorType
from pulse.typed import TypedNetwork


@record(eq=False)
class TensorflowOp(InferenceOp):
    """A TensorFlow node as an op.

    op_type     the operator
    title       the name of the node in the file
    attributes  numbers, text, TensorType, dims, arrays, FunctionName, lists of them
    outputs     the names of the outputs that may be read
    function_models  the functions of the file, which attributes may name
    """

    op_type: str
    title: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: tuple[str, ...] = ()
    function_models: FunctionModels | None = None

    @property
    def name(self) -> str:
        return self.op_type

    @property
    def origin(self) -> str:
        return f"node {self.title}"

    @property
    def is_supported(self) -> bool:
        return self._translator() is not None

    def _translator(self) -> Callable[[Any], Any] | None:
        return find_translator(own_name(self.op_type)) or TRANSLATORS.get(self.op_type)

    def translate(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        translator = self._translator()
        if translator is None:
            raise LoadError(
                f'{wire} ({self.op_type}): the operator is not supported; @pulse.operator("{own_name(self.op_type)}") '
                "adds it, see docs/tensorflow.md"
            )
        if self.op_type not in TRANSLATORS.complex_operators and any(
            isinstance(attribute, TensorType) and attribute.is_complex
            for attribute in self.attributes.values()
        ):
            raise LoadError(f"{wire} ({self.op_type}): complex numbers are not supported by this operator")
        context = TensorflowNode(
            op_type=self.op_type,
            opset=1,
            wire_name=wire,
            attributes=self.attributes,
            inputs=tuple(inputs),
            outputs=self.outputs,
            graph=target.graph,
            scope=target.scope,
            function_models=self.function_models,
        )
        outlets = wire_node(translator, context)
        if len(outlets) < len(self.outputs):
            missing = ", ".join(self.outputs[len(outlets) :])
            raise LoadError(f"{wire} ({self.op_type}): its outputs {missing} are not supported")
        return outlets[: len(self.outputs)]

    def relations(
        self, wire: str, inputs: Sequence[OutletId], outlets: Sequence[OutletId], wire_facts: WireFacts
    ) -> Iterable[FactRelation]:
        node = InferenceNode(
            self.op_type, 1, wire, self.attributes, tuple(inputs), tuple(outlets), wire_facts
        )
        return RULES.get(self.op_type, DEFAULT).relations(node)

    def detail(self) -> str:
        return " ".join(
            f"{name}={_value_text(value)}"
            for name, value in sorted(self.attributes.items())
            if value is not None
        )


def _value_text(value: object) -> str:
    if isinstance(value, int | float | str | list | tuple | TensorType):
        return short_text(cast("object", value))
    return getattr(value, "name", None) or "<tensor>"
