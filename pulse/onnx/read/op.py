"""Nodes of an ONNX graph as ops of the analyser's graph."""

import os
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, cast

import numpy as np

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.errors import LoadError
from pulse.facts import Array, TypedFact
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.inputs import named_dim
from pulse.infer.node_context import NodeContext
from pulse.infer.op import InferenceOp, short_text
from pulse.infer.relations import FactRelation
from pulse.infer.rules import DEFAULT, Rule
from pulse.infer.translators import wire_node
from pulse.infer.wire_facts import WireFacts
from pulse.onnx.proto import ValueInfoProto
from pulse.onnx.registry import DEFAULT_DOMAINS, RULES, TRANSLATORS, find_translator, operator_name
from pulse.onnx.tensors import onnx_dtype
from pulse.onnx.unsupported import unsupported_advice
from pulse.ops.generic import UnknownOp
from pulse.support.record import record
from pulse.typed import TypedNetwork

_OWN_FOLDER = f"{Path(__file__).parents[2]}{os.sep}"
"""The folder of this package, whose lines belong to no model."""
_TRACE_LINE = re.compile(r'File "([^"]+)", line (\d+)')


@record(eq=False)
class OnnxOp(InferenceOp):
    """An ONNX node as an op.

    op_type        the operator
    domain, opset  its domain, and the version of that
    title          the node's name in the file, which may be empty
    attributes     numbers, text, lists of them, arrays, Subgraphs
    trace          the exporter's stack trace, if the file has one
    slots          the index of the input for each input slot of the operator; None if omitted
    outputs        the names of the outputs; empty if they are not used
    captures       the names of the node's last inputs: values that its Subgraphs read
    stated         what the file states of the outputs
    """

    op_type: str
    domain: str
    opset: int
    title: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    slots: tuple[int | None, ...] = ()
    outputs: tuple[str, ...] = ()
    trace: str = ""
    captures: tuple[str, ...] = ()
    stated: tuple[ValueInfoProto | None, ...] = ()

    @property
    def origin(self) -> str:
        if not self.trace:
            return f"node {self.title}" if self.title else ""
        lines: list[tuple[str, str]] = _TRACE_LINE.findall(self.trace)
        lines = [line for line in lines if not line[0].startswith(_OWN_FOLDER)]
        lines = [line for line in lines if "site-packages" not in line[0]] or lines
        node_text = [f"node {self.title}"] if self.title else []
        return ", ".join([*node_text, *(f"{file} line {number}" for file, number in lines[-1:])])

    @property
    def name(self) -> str:
        return operator_name(self.domain, self.op_type)

    @property
    def is_supported(self) -> bool:
        has_translator = find_translator(self.name) is not None
        return has_translator or (bool(self.stated) and all(map(is_stated, self.stated)))

    @property
    def advice(self) -> str:
        return unsupported_advice(self.domain, self.op_type)

    def translate(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        translator = find_translator(self.name)
        if translator is None:
            return self._keep(target, wire, inputs)
        slots = self._slots(inputs)
        context = NodeContext(
            op_type=self.op_type,
            opset=self.opset,
            wire_name=wire,
            attributes=self.attributes,
            inputs=slots,
            outputs=self.outputs,
            graph=target.graph,
            scope=target.scope,
            captures=dict(zip(self.captures, inputs[len(inputs) - len(self.captures) :])),
        )
        outlets = wire_node(translator, context)
        extra = [name for name in self.outputs[len(outlets) :] if name]
        if extra:
            raise LoadError(f"{wire} ({self.op_type}): its outputs {', '.join(extra)} are not supported")
        return outlets[: len(self.outputs)]

    def _keep(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """Add the operator as the file states it, which cannot be executed; return its outputs.

        Raises LoadError: the file does not state the outputs in terms of the inputs
        """
        symbols = {symbol for fact in target.inputs.values() for dim in fact.shape for symbol in dim.symbols}
        facts = stated_facts(self.stated, target.scope, symbols, f"{wire} ({self.name})")
        if facts is None:
            raise LoadError(
                f"{wire} ({self.name}): the operator is not supported, and the file does not state its outputs in "
                "terms of the inputs; " + (self.advice or f'register it with @pulse.operator("{self.name}")')
            )
        op = UnknownOp(self.name, wire, self.attributes, tuple(facts), self.advice)
        return target.graph.add(wire, op, inputs, facts)

    @property
    def uniform(self) -> bool:
        return self._rule.uniform

    @property
    def parts(self) -> Container[int]:
        return self._rule.parts

    @property
    def _rule(self) -> Rule:
        """How the facts of its wires determine each other; without our rules, only by the translator."""
        plain = self.domain in DEFAULT_DOMAINS and find_translator(self.op_type) is TRANSLATORS.get(
            self.op_type
        )
        return RULES.get(self.op_type, DEFAULT) if plain else DEFAULT

    def relations(
        self, wire: str, inputs: Sequence[OutletId], outlets: Sequence[OutletId], wire_facts: WireFacts
    ) -> Iterable[FactRelation]:
        facts = (self.attributes, self._slots(inputs), tuple(outlets), wire_facts)
        return self._rule.relations(InferenceNode(self.op_type, self.opset, wire, *facts))

    def _slots(self, inputs: Sequence[OutletId]) -> tuple[OutletId | None, ...]:
        """Return the operator's inputs, None for omitted ones."""
        return tuple(None if slot is None else inputs[slot] for slot in self.slots)

    def detail(self) -> str:
        return " ".join(f"{name}={_value_text(value)}" for name, value in sorted(self.attributes.items()))


def _value_text(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"<tensor {list(cast(Array, value).shape)}>"
    return short_text(cast(object, value)) if isinstance(value, int | float | str | list) else "<graph>"


def is_stated(value: ValueInfoProto | None) -> bool:
    """Return whether the file has type and shape, with a size or a name for every axis."""
    if value is None or not value.type.HasField("tensor_type"):
        return False
    tensor = value.type.tensor_type
    has_sizes = all(dim.dim_param or dim.dim_value > 0 for dim in tensor.shape.dim)
    return bool(tensor.elem_type) and tensor.HasField("shape") and has_sizes


def stated_facts(
    values: Sequence[ValueInfoProto | None], scope: SymbolScope, symbols: Collection[Symbol], subject: str
) -> list[TypedFact] | None:
    """Return the facts of wires; None if one is not stated in terms of the inputs' symbols.

    Raises LoadError: a type is not supported
    """
    facts: list[TypedFact] = []
    for value in values:
        if value is None or not is_stated(value):
            return None
        tensor = value.type.tensor_type
        shape = tuple(
            named_dim(dim.dim_param, scope) if dim.dim_param else TDim.of(dim.dim_value)
            for dim in tensor.shape.dim
        )
        if any(symbol not in symbols for size in shape for symbol in size.symbols):
            return None
        facts.append(TypedFact(onnx_dtype(tensor.elem_type, subject), shape))
    return facts
