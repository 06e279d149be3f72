"""A node of a TensorFlow graph as the analyser sees it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from pulse.errors import LoadError
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.op import ModelOp
from pulse.infer.relations import FactRelation
from pulse.infer.rules import DEFAULT
from pulse.infer.translators import wire_node
from pulse.infer.wire_facts import WireFacts
from pulse.onnx.registry import find_translator
from pulse.support.record import record
from pulse.tensorflow.node import Functions, TensorflowNode
from pulse.tensorflow.operators import families as families
from pulse.tensorflow.registry import RULES, TRANSLATORS, own_name
from pulse.tensorflow.tensors import TensorType
from pulse.typed import TypedNetwork


@record(eq=False)
class TensorflowOp(ModelOp):
    """A node.

    type        the operator
    title       the name of the node in the file
    attributes  numbers, text, TensorType, dims, arrays, FunctionName, lists of them
    outputs     the names of the outputs that may be read
    library     the functions of the file, which attributes may name
    """

    type: str
    title: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: tuple[str, ...] = ()
    library: Functions | None = None

    @property
    def name(self) -> str:
        return self.type

    @property
    def origin(self) -> str:
        return f"node {self.title}"

    @property
    def is_supported(self) -> bool:
        return self._translator() is not None

    def _translator(self) -> Callable[[Any], Any] | None:
        return find_translator(own_name(self.type)) or TRANSLATORS.get(self.type)

    def translate(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        translator = self._translator()
        if translator is None:
            raise LoadError(
                f'{wire} ({self.type}): the operator is not supported; @pulse.operator("{own_name(self.type)}") adds '
                "it, see docs/tensorflow.md"
            )
        if self.type not in TRANSLATORS.complex_operators and any(
            isinstance(attribute, TensorType) and attribute.is_complex
            for attribute in self.attributes.values()
        ):
            raise LoadError(f"{wire} ({self.type}): complex numbers are not supported by this operator")
        context = TensorflowNode(
            op_type=self.type,
            opset=1,
            wire_name=wire,
            attributes=self.attributes,
            inputs=tuple(inputs),
            outputs=self.outputs,
            graph=target.graph,
            scope=target.scope,
            library=self.library,
        )
        outlets = wire_node(translator, context)
        if len(outlets) < len(self.outputs):
            missing = ", ".join(self.outputs[len(outlets) :])
            raise LoadError(f"{wire} ({self.type}): its outputs {missing} are not supported")
        return outlets[: len(self.outputs)]

    def relations(
        self, wire: str, inputs: Sequence[OutletId], outlets: Sequence[OutletId], wire_facts: WireFacts
    ) -> Iterable[FactRelation]:
        node = InferenceNode(self.type, 1, wire, self.attributes, tuple(inputs), tuple(outlets), wire_facts)
        return RULES.get(self.type, DEFAULT).relations(node)

    def detail(self) -> str:
        return " ".join(
            f"{name}={_short_text(value)}"
            for name, value in sorted(self.attributes.items())
            if value is not None
        )


def _short_text(value: object) -> str:
    if isinstance(value, int | float | str | list | tuple | TensorType):
        text = str(cast("object", value))
        return text if len(text) <= 60 else f"{text[:57]}..."
    return getattr(value, "name", None) or "<tensor>"
