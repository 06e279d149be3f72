"""Models of any source joined end to end."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from pulse.chain.chain import chained
from pulse.chain.stage import Stage
from pulse.facts import TypedFact
from pulse.loading.load import is_module, load
from pulse.models import TypedModel

if TYPE_CHECKING:
    from pulse.chain.stage import StageSource
    from pulse.loading.loaded import Loadable


def chain(
    *stages: "Stage | StageSource",
    outputs: Sequence[str] | None = None,
    title: str | None = None,
    inputs: Mapping[str, str] | None = None,
) -> TypedModel:
    """Join models: each reads what the one before it gives, or the wires that its ``Stage`` names.

    The result is a typed model like any other: its symbols are those of its inputs, and what the lengths of the later
    models are follows from them. Any part may be offline, written in pulses, or a model that takes chunks.

    stages   models or files, or ``Stage`` where inputs and outputs are to be joined by name
    outputs  the outputs to keep, by their names in the chain; those of the last stage by default
    title    of the model; the titles of its parts by default
    inputs   name -> shape of inputs that stages read by name, such as ``{"mic": "1,T", "far": "1,T"}``: those of one
             symbol have one length. Other inputs are those that read nothing
    Raises   PulseError, naming both sides of what does not fit
    """
    parts = [each if isinstance(each, Stage) else Stage(each) for each in stages]
    return chained(parts, _opened, outputs, title, inputs)


def _opened(stage: Stage, facts: Sequence[TypedFact]) -> TypedModel:
    """The typed model of a stage. Raises PulseError."""
    if callable(stage.model) and not is_module(stage.model):
        return stage.model(facts)
    return load(cast("Loadable", stage.model)).offline
