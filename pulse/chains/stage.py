"""One model of a chain, the wires that it reads, and the names of its outputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from pulse.chunks.exported_streams import scan_over_pulses
from pulse.facts import TypedFact
from pulse.loading.load import load
from pulse.metadata import is_exported
from pulse.models import HasModel, TypedModel, model_of
from pulse.support.record import record
from pulse.support.torch_modules import is_module

if TYPE_CHECKING:
    from pulse.loading.load import Loadable

    StageSource: TypeAlias = Loadable | Callable[[Sequence[TypedFact]], TypedModel]


@record(eq=False)
class Stage:
    """A model of a chain with explicit names for the wires that it reads and its outputs.

    model         whatever ``pulse.load`` takes or returns; or a function of the facts of the wires that it reads, in
                  their order, that returns a typed model
    reads         input -> wire that it reads, or the wires of its inputs in order: outputs of the stages before it by
                  their names in the chain, or inputs of the chain. Inputs without a wire are inputs of the chain. By
                  default it reads the outputs of the stage before it
    output_names  output -> name in the chain, or the names of its outputs in order; their own names by default
    """

    model: "StageSource"
    reads: Mapping[str, str] | Sequence[str] | None = None
    output_names: Mapping[str, str] | Sequence[str] | None = None

    def to_typed(self, facts: Sequence[TypedFact] = ()) -> TypedModel:
        """Return the typed model, a scan over its calls if it takes chunks.

        facts   types and shapes of the wires that it reads, for a function of them
        Raises  PulseError: the source cannot be opened
        """
        model = self.model
        if callable(model) and not isinstance(model, HasModel) and not is_module(model):
            return model(facts)
        original = load(cast("Loadable", model)).analyse()
        return model_of(scan_over_pulses(original)) if is_exported(original.metadata) else original
