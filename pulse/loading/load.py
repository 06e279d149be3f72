"""``load``: open a model from any source as a ``LoadedModel``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pulse.chunks.chunking import DETECT_ALL, Chunking
from pulse.errors import InputError, LoadError
from pulse.loading.format_registry import Content, ReadOptions, find_format
from pulse.loading.loaded_model import LoadedModel
from pulse.models import HasModel, Model, Network, PulsedModel, TypedModel, model_of
from pulse.program.file.stored_program import StoredProgram
from pulse.program.program import Program
from pulse.support.collector import fewer_collections
from pulse.support.torch_modules import is_module
from pulse.support.wording import spell

if TYPE_CHECKING:
    from pulse.onnx.read.file import ModelSource

    Loadable: TypeAlias = LoadedModel | Network | Program | HasModel | ModelSource
    """The possible sources of a model."""


@fewer_collections()
def load(
    source: "Loadable",
    inputs: Mapping[str, str] | None = None,
    *,
    constants: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    symbol: str | None = None,
    chunking: Chunking | None = None,
    ignore_value_info: bool = False,
    budget: Mapping[str, float] | None = None,
    signature: str | None = None,
) -> LoadedModel:
    """Open a model from a file, a recipe or an object. Every other call takes the same sources.

    source     the path or the bytes of a file, an ``onnx.ModelProto``, the path of a recipe (docs/recipes.md), a typed
               or pulsed model, a program, a view, node or connector of ``pulse.build``, or a result of ``load``
    inputs     shapes that replace the file's, by the input's name: ``{"x": "1,80,T,f32"}``. A name is a symbol,
               a size that may vary. A symbol of the file may be replaced by a number
    constants  inputs with a fixed value, by name: ``{"sr": 16000}``. Values are numbers, lists or arrays. These are no
               longer inputs of the model
    outputs    the outputs to keep; by default all. Any wires may be outputs
    symbol     the symbol that counts the frames of the stream; by default it is found. Other symbols before it in a
               shape, such as ``batch``, count streams and become 1; see ``LoadedModel.sizes``
    chunking   how a model is called that takes chunks and states; by default this is found
    ignore_value_info  ignore the shapes that the file states for wires other than its inputs. They are used only if the
               shapes of the inputs are not known. Wrong ones are always ignored, with a warning
    budget     limits of the analysis, for the whole file, in place of ``pulse.support.budget.Budget``'s:
               ``nodes`` after loops, branches and functions are unfolded, ``elements`` of constants that are computed
               before running, and the estimated ``seconds`` of computing them (counted, not measured).
               Example: ``{"nodes": 1000000}``
    signature  the function of a SavedModel or TFLite file; by default ``serving_default`` of a SavedModel, or the first
    Raises     LoadError: the source cannot be read, or ``inputs``, ``constants`` or ``signature`` do not fit it;
               InputError: it is a PyTorch module, which ``pulse.from_torch`` takes together with an example
    """
    user_chunking: Any = chunking
    if user_chunking is not None and not isinstance(user_chunking, Chunking):
        raise LoadError(f"chunking must be a pulse.Chunking, not {type(user_chunking).__name__}")
    if isinstance(source, HasModel):
        source, inputs = source.to_model(inputs), None
    reading_options = {"inputs": inputs, "constants": constants, "budget": budget, "signature": signature}
    if isinstance(source, LoadedModel | Network | Program):
        return _reopen(_wrap_model(source), outputs, symbol, chunking, reading_options)
    options = ReadOptions(inputs, constants, chunking or DETECT_ALL, ignore_value_info, budget, signature)
    opened = _read(source, options)
    if isinstance(opened, StoredProgram):
        return LoadedModel.of_program(opened, chunking, outputs=outputs, symbol=symbol, **reading_options)
    return LoadedModel(opened, outputs, symbol, chunking or DETECT_ALL)


def _reopen(
    model: LoadedModel,
    outputs: Sequence[str] | None,
    symbol: str | None,
    chunking: Chunking | None,
    reading_options: Mapping[str, object],
) -> LoadedModel:
    """Return a model that is read already, with other options. Raises LoadError: one that only reading a file takes."""
    for option, value in reading_options.items():
        if value is not None:
            raise LoadError(
                f"{spell(option)} is an option for reading a file, but {model.title} has already been "
                "read; give it when the file is read"
            )
    if isinstance(model.source_model, StoredProgram):
        return LoadedModel.of_program(model.source_model, chunking, outputs=outputs, symbol=symbol)
    if isinstance(model.source_model, PulsedModel) and (outputs, symbol, chunking) != (None, None, None):
        raise LoadError(
            f"{model.title}: is already in pulses; omit {spell('outputs')}, {spell('symbol')} and "
            "chunking, or give the model before it is pulsified"
        )
    return replace(
        model,
        outputs=model.outputs if outputs is None else outputs,
        symbol=model.symbol if symbol is None else symbol,
        chunking=chunking or model.chunking,
    )


def _wrap_model(source: LoadedModel | Network | Program) -> LoadedModel:
    """Wrap a model that is already in Python."""
    if isinstance(source, LoadedModel):
        return source
    if isinstance(source, StoredProgram):
        return LoadedModel(source)
    return LoadedModel(model_of(source.network if isinstance(source, Program) else source))


def _read(source: "ModelSource", options: ReadOptions) -> Model | TypedModel | StoredProgram:
    if is_module(source):
        raise InputError(
            f"{type(source).__name__} is a PyTorch module, and its operations depend on its inputs: use "
            'pulse.from_torch(module, example, dynamic={"x": {2: "T"}}), and give the result'
        )
    content = Content.of(source)
    return find_format(content).read(content, options)
