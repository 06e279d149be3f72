"""Model, TypedModel, PulsedModel: the steps of a model, each as a method that returns the next one.

Each has a network, which is data: a graph, its symbols, its names. The steps are functions of networks, imported when
they are called, so that ``import pulse`` is fast.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, TypeAlias, Unpack, overload

from pulse.chunks.exported_streams import pulsify_or_reopen
from pulse.dim import Symbol
from pulse.infer.network import FileNetwork
from pulse.program.backends.registry import Prepare
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.pulsify.network import PulsedNetwork
from pulse.rounding import Rounding
from pulse.runtimes import onnx_backend as onnx_backend
from pulse.substitution import with_sizes
from pulse.text.dump import dot
from pulse.typed import TypedNetwork

if TYPE_CHECKING:
    from os import PathLike

    from onnx import ModelProto

    from pulse.nnef.archive import Archive
    from pulse.pulsify.driver import PulsifyOptions

Network: TypeAlias = FileNetwork | TypedNetwork | PulsedNetwork


@overload
def model_of(network: FileNetwork) -> "Model": ...
@overload
def model_of(network: TypedNetwork) -> "TypedModel": ...
@overload
def model_of(network: PulsedNetwork) -> "PulsedModel": ...
def model_of(network: Network) -> "Model | TypedModel | PulsedModel":
    """Return the same network with its next steps."""
    if isinstance(network, Model | TypedModel | PulsedModel):
        return network
    parts = {field.name: getattr(network, field.name) for field in fields(network)}
    if isinstance(network, FileNetwork):
        return Model(**parts)
    return TypedModel(**parts) if isinstance(network, TypedNetwork) else PulsedModel(**parts)


class Model(FileNetwork):
    """A model as its file states it; facts may be partial."""

    def analyse(self) -> "TypedModel":
        return model_of(super().analyse())

    def dot(self) -> str:
        """Return the file's own graph as Graphviz DOT."""
        return dot(self.graph, self.title)


class HasModel(ABC):
    """Nodes of a graph from which a model can be made, as in ``pulse.build``."""

    @abstractmethod
    def to_model(self, inputs: Mapping[str, str] | None = None) -> Model:
        """Return the model as it is now; ``inputs`` has shapes by name. Raises InputError: they do not fit."""


class TypedModel(TypedNetwork):
    """A model that runs offline: every dtype and shape known, the length of the stream a symbol."""

    def with_sizes(self, sizes: Mapping[Symbol, int]) -> "TypedModel":
        """Return the model with numbers in place of some symbols, in a new scope. Raises FactError: they do not fit."""
        return with_sizes(self, sizes)

    def declutter(self) -> "TypedModel":
        """Return an equivalent model with fewer nodes; see ``pulse.declutter``."""
        from pulse.declutter import declutter

        return declutter(self)

    def with_constant_start(self, symbol: str | Symbol | None = None, fill: float = 0.0) -> "TypedModel":
        """Return a copy in which paddings that mirror or repeat frames before the stream pad with ``fill`` instead.

        A stream with mirrored frames has to wait for them, and keeps this delay. Frames that do not depend on the
        padding do not change. Warns with the nodes that change. Raises PulsifyError: there are none.
        """
        from pulse.pulsify.constant_start import constant_start

        return model_of(constant_start(self, self.find_symbol(symbol), fill))

    def to_nnef(self) -> "Archive":
        """Return the offline model as NNEF with tract's operators if it needs them; see ``pulse.nnef``.

        Raises WriteError: a node that these cannot express
        """
        from pulse.nnef.write.model import to_nnef

        return to_nnef(self)

    def pulsify(
        self,
        symbol: str | Symbol | None = None,
        pulse: int | None = None,
        **options: "Unpack[PulsifyOptions]",
    ) -> "PulsedModel":
        """Return the model in pulses of constant size; see ``pulse.pulsify.driver.pulsify``.

        A file that was written in pulses comes back as the stream that it was; see ``pulse.chunks.exported_streams``.
        """
        return model_of(pulsify_or_reopen(self, symbol, pulse, **options))


class PulsedModel(PulsedNetwork):
    """A model that takes pulses of constant size."""

    def compile(
        self,
        backend: str = "numba",
        *,
        weights: str | None = None,
        prepare: Prepare | None = None,
        activations: str | None = None,
    ) -> Program:
        """Return a program that runs it; see ``compile_model`` in ``pulse.program.compiler``, and ``Rounding``."""
        return compile_model(self, backend, Rounding(weights, activations), prepare=prepare)

    def to_onnx(self, opset: int = 17) -> "ModelProto":
        """Return the model as standard ONNX, with all states as inputs and outputs; see ``pulse.onnx.write``.

        Raises WriteError: an op that ONNX of this opset cannot express
        """
        from pulse.onnx.write.model import to_onnx

        return to_onnx(self, opset)

    def to_nnef(self) -> "Archive":
        """Return the model as NNEF that tract streams, its states inside a scan; see ``pulse.nnef``.

        Raises WriteError: a node that NNEF and tract cannot express
        """
        from pulse.nnef.write.model import to_nnef

        return to_nnef(self)

    def save(self, path: "str | PathLike[str]", opset: int = 17) -> None:
        """Write ``to_onnx`` to a file. Raises WriteError: ONNX cannot express an op, or the file cannot be written."""
        from pulse.onnx.write.model import save

        save(self.to_onnx(opset), path)
