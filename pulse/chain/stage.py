"""One model of a chain: what it is, which wires it reads and what it gives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from pulse.chunks.chunking import Chunking
from pulse.chunks.exported import scanned_again
from pulse.facts import TypedFact
from pulse.model import Model
from pulse.onnx.metadata import is_exported
from pulse.typed import TypedModel

if TYPE_CHECKING:
    from onnx import ModelProto

    StageSource: TypeAlias = (
        TypedModel
        | Model
        | str
        | PathLike[str]
        | bytes
        | ModelProto
        | Callable[[Sequence[TypedFact]], TypedModel]
    )


@dataclass(frozen=True, eq=False)
class Stage:
    """A model of a chain, where more is to be said of it than which model it is.

    model     a typed model, one as it was read, or a file: a path, bytes or an ``onnx.ModelProto``; or a function of
              the facts of the wires that it reads, in their order, which gives a typed model
    reads     input -> wire that it reads, or the wires of its inputs in order: outputs of the stages before it by the
              names that ``gives`` lets them have, or inputs of the chain. Inputs without a wire are inputs of the
              chain. By default it reads the outputs of the stage before it
    gives     output -> name in the chain, or the names of its outputs in order; their own names by default
    inputs, constants, symbol, pulse, ignore_value_info, budget   as of ``pulse.stream``, where the model is a file
    states, context, axes, delay, initial, outputs   as of ``pulse.stream``, where the model takes chunks
    """

    model: "StageSource"
    reads: Mapping[str, str] | Sequence[str] | None = None
    gives: Mapping[str, str] | Sequence[str] | None = None
    inputs: Mapping[str, str] | None = None
    constants: Mapping[str, Any] | None = None
    symbol: str | None = None
    pulse: int | None = None
    states: Mapping[str, str] | None = None
    context: Mapping[str, int] = field(default_factory=dict[str, int])
    axes: Mapping[str, int] = field(default_factory=dict[str, int])
    delay: Mapping[str, int] = field(default_factory=dict[str, int])
    initial: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: Sequence[str] | None = None
    ignore_value_info: bool = False
    budget: Mapping[str, float] | None = None

    def opened(self, facts: Sequence[TypedFact] = ()) -> TypedModel:
        """The typed model, a scan over its calls where it takes chunks.

        facts   of the wires that it reads, for a function of them
        Raises  PulseError
        """
        from pulse.recipes.opening import open_source

        if isinstance(self.model, TypedModel):
            return self.model
        if isinstance(self.model, Model):
            return self.model.analyse()
        if callable(self.model):
            return self.model(facts)
        chunking = Chunking(self.states, self.context, self.axes, self.delay, self.initial, self.outputs)
        opened = open_source(
            self.model,
            self.inputs,
            self.constants,
            chunking,
            self.symbol,
            self.pulse,
            self.ignore_value_info,
            self.budget,
        )
        original = opened.original
        return scanned_again(original) if is_exported(original.metadata) else original
