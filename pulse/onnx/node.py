"""A node of an ONNX graph, as the file states it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from pulse.errors import LoadError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.model import ModelOp
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import TRANSLATORS
from pulse.typed import TypedModel

DEFAULT_DOMAINS = ("", "ai.onnx")
_TRACE_LINE = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True, eq=False)
class OnnxOp(ModelOp):
    """An ONNX node.

    type, domain   the operator
    opset          the version of its domain
    title          the node's name in the file, which may be empty
    attributes     numbers, text, lists of them, arrays, Subgraphs
    trace          the exporter's stack trace, if the file has one
    slots          for each input place of the operator: which of the node's inputs, None where it is left out
    outputs        the names of the outputs; empty where they are not asked for
    captures       the names of the node's last inputs: values that its Subgraphs read
    """

    type: str
    domain: str
    opset: int
    title: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    slots: tuple[int | None, ...] = ()
    outputs: tuple[str, ...] = ()
    trace: str = ""
    captures: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        lines = _TRACE_LINE.findall(self.trace)
        told = [f"node {self.title}"] if self.title else []
        return ", ".join([*told, *(f"{file} line {number}" for file, number in lines[-1:])])

    @property
    def name(self) -> str:
        return self.type if self.domain in DEFAULT_DOMAINS else f"{self.domain}.{self.type}"

    @property
    def covered(self) -> bool:
        return self.domain in DEFAULT_DOMAINS and self.type in TRANSLATORS

    def translate(self, target: TypedModel, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        placed = tuple(None if slot is None else inputs[slot] for slot in self.slots)
        context = NodeContext(
            self.type,
            self.opset,
            wire,
            self.attributes,
            placed,
            self.outputs,
            target.graph,
            target.scope,
            dict(zip(self.captures, inputs[len(inputs) - len(self.captures) :])),
        )
        made = TRANSLATORS[self.type](context)
        outlets: list[OutletId] = [made] if isinstance(made, OutletId) else list(made)
        extra = [name for name in self.outputs[len(outlets) :] if name]
        if extra:
            raise LoadError(f"{wire} ({self.type}): its outputs {', '.join(extra)} are not covered")
        return outlets[: len(self.outputs)]

    def detail(self) -> str:
        return " ".join(f"{name}={_short(value)}" for name, value in sorted(self.attributes.items()))


def _short(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"<tensor {list(cast(Array, value).shape)}>"
    text = str(cast(object, value)) if isinstance(value, int | float | str | list) else "<graph>"
    return text if len(text) <= 60 else f"{text[:57]}..."
