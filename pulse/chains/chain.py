"""Models joined end to end, as one typed model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pulse.chains.joining import require_compatible, solve_symbols
from pulse.chains.stage import Stage
from pulse.dim import Symbol, SymbolScope, TDim
from pulse.errors import DimError, FactError
from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.dims import unify
from pulse.ops.source import Source
from pulse.substitution import Terms
from pulse.support.naming import free_name, require_name
from pulse.support.wording import count_of, spell
from pulse.typed import TypedGraph

if TYPE_CHECKING:
    from pulse.chains.stage import StageSource


def chain(
    *stages: "Stage | StageSource",
    outputs: Sequence[str] | None = None,
    title: str | None = None,
    inputs: Mapping[str, str] | None = None,
) -> TypedModel:
    """Join models: each reads the outputs of the one before it, or the wires that its ``Stage`` names.

    The result is a typed model like any other: its symbols come from its inputs, and determine the lengths of the
    later models. Any part may be offline, written in pulses, or a model that takes chunks.

    stages   models or files, or ``Stage`` to join inputs and outputs by name
    outputs  the outputs to keep, by their names in the chain; those of the last stage by default
    title    title of the model; by default the titles of its parts
    inputs   name -> shape of inputs that stages read by name, such as ``{"mic": "1,T", "far": "1,T"}``: those of one
             symbol have one length. Inputs that read nothing are inputs, too
    Raises   PulseError: a model cannot be read, or two do not fit
    """
    parts = [stage if isinstance(stage, Stage) else Stage(stage) for stage in stages]
    if not parts:
        raise FactError("a chain needs at least one model")
    builder = _Chain()
    builder.begin(inputs or {})
    for index, part in enumerate(parts):
        builder.add(part, f"stage {index + 1}")
    return builder.model(outputs, title)


@dataclass
class _Chain:
    """The models joined so far.

    graph     the joined graph
    scope     its symbols
    wires     name -> wire, of the inputs and of every stage's outputs
    last      the outputs of the last stage: their own names -> names in the chain
    unread    the inputs that were declared and that no stage has read yet
    titles    the titles of the models
    origins   the origins of nodes, by name
    metadata  the metadata of all models together
    """

    graph: TypedGraph = field(default_factory=TypedGraph)
    scope: SymbolScope = field(default_factory=SymbolScope)
    wires: dict[str, OutletId] = field(default_factory=dict[str, OutletId])
    last: dict[str, str] = field(default_factory=dict[str, str])
    unread: list[str] = field(default_factory=list[str])
    titles: list[str] = field(default_factory=list[str])
    origins: dict[str, str] = field(default_factory=dict[str, str])
    metadata: dict[str, str] = field(default_factory=dict[str, str])

    def begin(self, inputs: Mapping[str, str]) -> None:
        """Declare inputs, by name and shape. Raises FactError: a text that is not a shape."""
        for name, text in inputs.items():
            try:
                fact = TypedFact.of_input(text, self.scope)
            except (FactError, DimError) as error:
                raise FactError(
                    f"input {name}: {text!r} is not a shape; give dims, such as 1,T: {error}"
                ) from error
            (outlet,) = self.graph.add(name, Source(fact), (), [fact])
            self.wires[name] = outlet
            self.graph.inputs.append(outlet)
        self.last = {name: name for name in inputs}
        self.unread = list(inputs)

    def add(self, stage: Stage, title: str) -> None:
        """Join one more model. Raises PulseError: it cannot be opened, or does not fit."""
        model = stage.to_typed(self._facts(stage, title))
        subject = f"{title} ({model.title})"
        reads = self._reads(stage, model, subject)
        self.unread = [name for name in self.unread if name not in reads.values()]
        terms = Terms(self.scope, self._lengths(model, reads, subject))
        feeds = {model.graph.find(name): self.wires[wire] for name, wire in reads.items()}
        try:
            terms.assume(model.scope)
            self._require_equal(model, reads, terms)
            outlets = terms.graft(model, self.graph, feeds)
        except (FactError, DimError) as error:
            raise FactError(f"{subject}: {error}; it reads {self._list_wires(reads.values())}") from error
        for name, view in model.graph.views_in(
            {old.node: (new.node,) for old, new in outlets.items()}
        ).items():
            self.graph.views[free_name(name, self.graph.views.__contains__)] = view
        for outlet in model.graph.inputs:
            if outlet not in feeds:
                self._add_wire(self.graph.label(outlets[outlet]), outlets[outlet])
                self.graph.inputs.append(outlets[outlet])
        self.last = {
            name: self._add_wire(self._given_name(stage, model, name, subject), outlets[outlet])
            for name, outlet in zip(model.graph.output_names, model.graph.outputs)
        }
        self.titles.append(model.title)
        self.metadata = {**model.metadata, **self.metadata}

    def model(self, outputs: Sequence[str] | None, title: str | None) -> TypedModel:
        """Set the outputs, and return a copy of the joined model.

        Raises FactError: an input that no stage reads, or no such output
        """
        names = list(self.last.values()) if outputs is None else list(outputs)
        for name in self.unread:
            if name not in names:
                raise FactError(f"input {name}: no stage reads it; omit it, or name it where it is read")
        self.graph.set_outputs([self._wire(name, "the chain's outputs") for name in names], names)
        model_title = title or " -> ".join(self.titles)
        return TypedModel(self.graph, self.scope, model_title, self.metadata, self.origins).copy()

    def _facts(self, stage: Stage, subject: str) -> list[TypedFact]:
        """Return the facts of the wires that a stage may read, as far as known without its model."""
        if stage.reads is None:
            names = self.last.values()
        else:
            names = stage.reads.values() if isinstance(stage.reads, Mapping) else stage.reads
        return [self.graph.fact(self._wire(name, subject)) for name in names]

    def _reads(self, stage: Stage, model: TypedModel, subject: str) -> dict[str, str]:
        """Return input -> wire of the chain, for the inputs that read one."""
        inputs = list(model.inputs)
        if stage.reads is None:
            return self._default_reads(model, subject) if self.last else {}
        if isinstance(stage.reads, Mapping):
            reads = dict(stage.reads)
        else:
            if len(stage.reads) > len(inputs):
                raise FactError(
                    f"{subject}: reads {count_of(len(stage.reads), 'wire')} and has inputs {', '.join(inputs)}"
                )
            reads = dict(zip(inputs, stage.reads))
        for name, wire in reads.items():
            require_name("input", name, inputs, FactError, subject)
            self._wire(wire, subject)
        return reads

    def _default_reads(self, model: TypedModel, subject: str) -> dict[str, str]:
        """Return the usual wiring: each input reads the wire of its name.

        If one input and one wire remain, the input reads that wire.
        """
        reads = {name: self.last[name] for name in model.inputs if name in self.last}
        moving = [name for name, fact in model.inputs.items() if name not in reads and _has_symbols(fact)]
        free = [name for name in self.last if name not in reads]
        if len(moving) == 1 and len(free) == 1:
            reads[moving[0]] = self.last[free[0]]
        elif moving:
            wires = "; ".join(
                f"{name}: {self.graph.fact(self.wires[wire])}" for name, wire in self.last.items()
            )
            input_text = "; ".join(f"{name}: {model.inputs[name]}" for name in moving)
            raise FactError(
                f"{subject}: which outputs of the stage before it ({wires}) does it read as {input_text}? Say so with "
                f"{spell('reads', {moving[0]: free[0] if free else next(iter(self.last.values()))})}"
            )
        return reads

    def _wire(self, name: str, subject: str) -> OutletId:
        return self.wires[require_name("wire", name, self.wires, FactError, subject)]

    def _lengths(self, model: TypedModel, reads: Mapping[str, str], subject: str) -> dict[Symbol, TDim]:
        """Return the symbols of a model, from the wires that it reads."""
        lengths: dict[Symbol, TDim] = {}
        for name, wire in reads.items():
            source, target = self.graph.fact(self.wires[wire]), model.inputs[name]
            try:
                require_compatible(source, target)
                lengths = solve_symbols(source, target, lengths)
            except FactError as error:
                raise FactError(
                    f"{subject}: {wire} ({source}) does not fit {name} ({target}): {error}"
                ) from error
        return lengths

    def _require_equal(self, model: TypedModel, reads: Mapping[str, str], terms: Terms) -> None:
        for name, wire in reads.items():
            source, target = self.graph.fact(self.wires[wire]), terms.fact(model.inputs[name])
            for axis, (left, right) in enumerate(zip(source.shape, target.shape)):
                unify(left, right, f"axis {axis} of {wire} and {name}")

    def _given_name(self, stage: Stage, model: TypedModel, name: str, subject: str) -> str:
        """Return the chain's name of an output of a stage."""
        names = model.graph.output_names
        if stage.output_names is None:
            return free_name(name, self.wires.__contains__)
        if isinstance(stage.output_names, Mapping):
            for other in stage.output_names:
                require_name("output", other, names, FactError, subject)
            new_name = stage.output_names.get(name)
        else:
            if len(stage.output_names) > len(names):
                raise FactError(
                    f"{subject}: gives {count_of(len(stage.output_names), 'name')} and has outputs {', '.join(names)}"
                )
            new_name = dict(zip(names, stage.output_names)).get(name)
        if new_name is None:
            return free_name(name, self.wires.__contains__)
        if new_name in self.wires:
            raise FactError(
                f"{subject}: a wire is already called {new_name}; give its output {name} another name"
            )
        return new_name

    def _add_wire(self, name: str, outlet: OutletId) -> str:
        self.wires[name] = outlet
        return name

    def _list_wires(self, wires: Iterable[str]) -> str:
        return "; ".join(f"{wire}: {self.graph.fact(self.wires[wire])}" for wire in wires) or "no wire"


def _has_symbols(fact: TypedFact) -> bool:
    return any(dim.symbols for dim in fact.shape)
