"""Model: a file as it was read. Shapes and types may be partly unknown; ``analyse`` makes it a TypedModel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pulse.dim import SymbolScope, TDim
from pulse.errors import DimError, LoadError
from pulse.facts import Array, DType, TypedFact, dtype_name
from pulse.graph import Graph, Node, OutletId
from pulse.ops.source import Source
from pulse.typed import TypedGraph, TypedModel, constant

if TYPE_CHECKING:
    from onnx import ModelProto

    ModelSource: TypeAlias = str | PathLike[str] | bytes | ModelProto


@dataclass(frozen=True, eq=False)
class InferenceFact:
    """What is known of a wire before it is analysed; None stands for what is not."""

    dtype: DType | None = None
    shape: tuple[TDim | None, ...] | None = None
    value: Array | None = None

    def typed(self) -> TypedFact | None:
        """The typed fact, where type and every dim are known."""
        if self.dtype is None or self.shape is None:
            return None
        dims = tuple(dim for dim in self.shape if dim is not None)
        return TypedFact(self.dtype, dims, self.value) if len(dims) == len(self.shape) else None

    def __str__(self) -> str:
        dims = ["…"] if self.shape is None else ["?" if dim is None else str(dim) for dim in self.shape]
        return ",".join([*dims, "?" if self.dtype is None else dtype_name(self.dtype)])


class ModelOp:
    """A node of a file, in the terms of its format."""

    @property
    def name(self) -> str:
        """The operator's name in dumps and errors."""
        return type(self).__name__

    @property
    def covered(self) -> bool:
        """Whether it can be translated."""
        return True

    @property
    def origin(self) -> str:
        """Where the node comes from: its name in the file and the line of the program, as far as the file tells."""
        return ""

    def translate(self, target: TypedModel, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """Wire typed ops that do the same; the outlets that stand for this node's outputs."""
        raise NotImplementedError

    def detail(self) -> str:
        """The attributes, for dumps."""
        return ""


@dataclass(frozen=True)
class Input(ModelOp):
    """An input of the model, fed by the caller."""

    fact: InferenceFact

    def translate(self, target: TypedModel, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        fact = self.fact.typed()
        if fact is None:
            raise LoadError(_unknown_dims(wire, self.fact))
        outlets = target.graph.add(wire, Source(fact), (), [fact])
        target.graph.inputs.extend(outlets)
        return outlets

    def detail(self) -> str:
        return str(self.fact)


def _unknown_dims(name: str, fact: InferenceFact) -> str:
    if fact.shape is None:
        return f'input {name}: the file gives no shape; give it, as in inputs={{"{name}": "1,80,T"}}'
    free = iter("TABCDEFGH" * len(fact.shape))
    example = ",".join(next(free) if dim is None else str(dim) for dim in fact.shape)
    places = ", ".join(str(axis) for axis, dim in enumerate(fact.shape) if dim is None)
    return (
        f"input {name} ({fact}): the file gives no size for axis {places}; give numbers or names, as in "
        f'inputs={{"{name}": "{example}"}}'
    )


@dataclass(frozen=True, eq=False)
class Constant(ModelOp):
    """A tensor stored in the file."""

    value: Array

    def translate(self, target: TypedModel, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        return [constant(target.graph, wire, self.value)]


ModelGraph: TypeAlias = Graph[InferenceFact, ModelOp]


@dataclass
class Model:
    """A model as its file states it: nodes of the file's format, over one scope of symbols."""

    graph: ModelGraph
    scope: SymbolScope
    title: str = "model"
    metadata: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def inputs(self) -> dict[str, InferenceFact]:
        """Name of each input, and what is known of it."""
        return {self.graph.label(outlet): self.graph.fact(outlet) for outlet in self.graph.inputs}

    def analyse(self) -> TypedModel:
        """Derive every type and shape. Raises LoadError (operators not covered, unknown dims), FactError."""
        needed = self._needed()
        self._check_covered(needed)
        target = TypedModel(TypedGraph(), self.scope, self.title, dict(self.metadata))
        made: dict[OutletId, OutletId] = {}
        for node in needed:
            before = len(target.graph.nodes)
            try:
                outlets = node.op.translate(target, node.name, [made[outlet] for outlet in node.inputs])
            except DimError as error:
                raise LoadError(
                    f"{node.name} ({node.op.name}): {error}; fix that dim with inputs="
                ) from error
            if node.op.origin:
                target.origins.update({new.name: node.op.origin for new in target.graph.nodes[before:]})
            made.update({OutletId(node.id, slot): outlet for slot, outlet in enumerate(outlets)})
        target.graph.set_outputs([made[outlet] for outlet in self.graph.outputs], self.graph.output_names)
        return target

    def _needed(self) -> list[Node[InferenceFact, ModelOp]]:
        """The inputs, and the nodes that the outputs need, in the order of the file."""
        wanted = {*self.graph.order(), *(outlet.node for outlet in self.graph.inputs)}
        return [node for node in self.graph.nodes if node.id in wanted]

    def _check_covered(self, nodes: Sequence[Node[InferenceFact, ModelOp]]) -> None:
        missing: dict[str, list[str]] = {}
        for node in nodes:
            if not node.op.covered:
                missing.setdefault(node.op.name, []).append(node.name)
        if missing:
            listed = "; ".join(
                f"{name} ({len(where)} node{'s' if len(where) > 1 else ''}, first {where[0]})"
                for name, where in sorted(missing.items())
            )
            raise LoadError(f"{self.title}: operators that are not covered: {listed}")

    def lines(self) -> list[str]:
        """The model as text: inputs, nodes and outputs, one a line."""
        graph = self.graph
        lines = [f"model {self.title}"]
        lines += [f"input {name} {fact}" for name, fact in self.inputs.items()]
        for node in graph.nodes:
            if isinstance(node.op, Input):
                continue
            reads = ", ".join(graph.label(outlet) for outlet in node.inputs)
            text = f"{node.name} = {node.op.name}({reads})"
            if isinstance(node.op, Constant):
                text = f"{node.name} = Constant {node.outputs[0].fact}"
            lines.append(f"{text} {node.op.detail()}".rstrip())
        lines += [
            f"output {name} {graph.label(outlet)}" for name, outlet in zip(graph.output_names, graph.outputs)
        ]
        return lines


def load(source: "ModelSource", inputs: Mapping[str, str] | None = None) -> Model:
    """Read an ONNX model from a path, its bytes or a ModelProto.

    inputs   shapes that override those of the file, by the input's name: ``{"x": "1,80,T,f32"}``.
             A name stands for any length; a name that the file uses may be fixed to a number.
    Raises   LoadError: the file cannot be read, or ``inputs`` does not fit it
    """
    from pulse.onnx.reader import read

    given: Any = inputs or {}
    if not isinstance(given, Mapping) or not all(
        isinstance(text, str) for text in cast("Mapping[str, Any]", given).values()
    ):
        raise LoadError(f'inputs must map names to shapes, such as {{"x": "1,80,T,f32"}}, not {inputs!r}')
    return read(source, cast("Mapping[str, str]", given))
