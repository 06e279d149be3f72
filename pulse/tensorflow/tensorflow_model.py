"""A model from a TensorFlow file, with its graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any

from pulse.errors import LoadError
from pulse.infer.inputs import check_given
from pulse.models import Model
from pulse.support.budget import Budget, Spending, count_spending
from pulse.tensorflow.picture import picture
from pulse.tensorflow.read.file import GraphContents, read_contents
from pulse.tensorflow.read.flat import FlatGraph
from pulse.tensorflow.read.reader import read_model

if TYPE_CHECKING:
    from pulse.tensorflow.session import Session


@dataclass
class TensorflowModel(Model):
    """A model with its next steps, and the graph that it was read from."""

    contents: GraphContents | None = None
    nodes: FlatGraph | None = None

    def dot(self) -> str:
        """Return the file's graph: variables are cylinders, control edges dashed, attributes tooltips."""
        return super().dot() if self.nodes is None else picture(self, self.nodes)

    def session(self) -> "Session":
        """Return a session on the graph, with its own variables. Raises LoadError: the graph is unknown."""
        from pulse.tensorflow.session import Session

        if self.contents is None:
            raise LoadError(f"{self.title}: its graph is not known; load it from its file")
        return Session(self.contents)


def load(
    source: "str | PathLike[str] | bytes",
    inputs: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    signature: str | None = None,
    outputs: Sequence[str] | None = None,
    budget: Mapping[str, float] | None = None,
) -> TensorflowModel:
    """Read a GraphDef, by its path or bytes, or the folder of a SavedModel.

    inputs, constants, budget   as in ``pulse.load``; an input may be any tensor, ``node`` or ``node:1``
    signature  the signature of a SavedModel: by default ``serving_default``, or the first
    outputs    the tensors to analyse: any of a graph, or some of a signature's. By default the tensors that no node
               reads, or all of the signature's
    Raises     LoadError: the file cannot be read, or has an operator that is not supported
    """
    check_given(inputs, constants)
    with count_spending(Spending(Budget.of(budget))):
        contents = read_contents(source)
        model, nodes = read_model(contents, inputs or {}, constants or {}, signature, outputs)
    values = {field.name: getattr(model, field.name) for field in fields(model)}
    return TensorflowModel(**values, contents=contents, nodes=nodes)
