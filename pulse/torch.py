"""From PyTorch: a module goes through PyTorch's own exporter, in memory."""

import contextlib
import inspect
import io
import logging
import re
import warnings
from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeAlias, cast

from onnx import ModelProto

from pulse.errors import InputError, LoadError, PulseWarning
from pulse.model import Model, load

Axes: TypeAlias = Mapping[int, str]

_FIXED = re.compile(r"static shape of (\d+) for dimension inputs\['(\w+)'\]\.shape\[(\d+)\]")
_BAKED_WORDS = ("static shape", "specialized", "Constraints violated")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LONGEST_REASON = 1000
"""Letters of an exporter's message that are worth showing."""

BAKED_HELP = (
    "typical causes are int(x.shape[-1]) or len(x), a comparison of a length with a number, a loop over time, a "
    "padding or a mask whose size was computed in Python or numpy, and tables of a fixed length; compute with "
    "x.shape[-1] and tensor operations instead, slice tables with [:x.shape[-1]], and write loops over time as "
    "layers (nn.GRU, convolutions, cumsum)"
)


class Call(NamedTuple):
    """How the module is called: the example of each parameter of its forward, by name, and its dynamic axes."""

    arguments: dict[str, Any]
    axes: dict[str, Axes]
    positional: bool


def from_torch(
    module: Any,
    example: Any,
    dynamic: Mapping[str | int, Mapping[int, str]] | None = None,
    opset: int | None = None,
) -> Model:
    """The model of a PyTorch module.

    module   an ``nn.Module``; it is exported in eval mode, and is afterwards in the modes that it was in
    example  what its ``forward`` takes: a tensor, a tuple of them, or a dict by the parameters' names
    dynamic  the axes of any length and their names, by the input's name or place: ``{"x": {2: "T"}}``
    opset    the version of ONNX to export to; the exporter's own choice by default
    Raises   InputError: torch is missing, or ``example`` or ``dynamic`` do not fit ``forward``;
             LoadError: the exporter fails, or has fixed a dynamic axis to the example's length
    """
    torch = _torch()
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"from_torch takes a torch.nn.Module, not {type(module).__name__}; give the module itself"
        )
    title = type(module).__name__
    call = _call(torch, module, example, dynamic or {})
    _forget_recurrent(torch)
    with _evaluating(module), _quiet():
        if find_spec("onnxscript") is not None:
            proto = _exported(torch, module, call, opset, title)
            notes: list[str] = []
        else:
            proto, notes = _traced(torch, module, call, opset, title)
    for note in notes:
        warnings.warn(f"{title}: {note}", PulseWarning, stacklevel=2)
    _require_dynamic(proto, call, title)
    proto.graph.name = title
    return load(proto, ignore_value_info=True)


def _torch() -> Any:
    if find_spec("torch") is None:
        raise InputError(
            "from_torch needs PyTorch; pip install 'pulse-stream[torch]', or export to ONNX where PyTorch is and load "
            "the file with pulse.load"
        )
    return import_module("torch")


def _forget_recurrent(torch: Any) -> None:
    """Make every export of an LSTM or GRU be as the first one of the process.

    The exporter takes these layers apart in its own way while it runs, but PyTorch (2.13) then remembers another way,
    found between two exports, which fixes the length.
    """
    for op in (torch.ops.aten.lstm.input, torch.ops.aten.gru.input):
        getattr(op, "_dispatch_cache", {}).clear()


def _call(torch: Any, module: Any, example: Any, dynamic: Mapping[str | int, Mapping[int, str]]) -> Call:
    """Examples and dynamic axes by the names of forward's parameters. Raises InputError."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        raise InputError(
            f"{type(module).__name__}.forward takes *{parameters[0].name}; wrap it in a module whose "
            "forward names its inputs"
        )
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    positional = not isinstance(example, Mapping)
    if positional:
        given: Sequence[Any] = (
            cast("Sequence[Any]", example) if isinstance(example, tuple | list) else (example,)
        )
        if len(given) > len(names):
            raise InputError(f"{len(given)} examples for the inputs {', '.join(names) or 'none'} of forward")
        arguments = dict(zip(names, given))
    else:
        arguments = dict(cast("Mapping[str, Any]", example))
    unknown = sorted(set(arguments) - set(names))
    if unknown:
        raise InputError(f"forward has no input {', '.join(unknown)}; it has {', '.join(names) or 'none'}")
    axes: dict[str, Axes] = {_input_name(key, arguments): value for key, value in dynamic.items()}
    for name, wanted in axes.items():
        value = arguments[name]
        if not isinstance(value, torch.Tensor):
            raise InputError(
                f"input {name} has dynamic axes, and its example is no tensor: {type(value).__name__}"
            )
        if not isinstance(cast("Any", wanted), Mapping):
            raise InputError(
                f'dynamic of {name}: {wanted!r} names no symbols; give axis and name, as in {{"{name}": {{0: "T"}}}}'
            )
        for axis, symbol in wanted.items():
            if not isinstance(cast("Any", symbol), str) or not symbol.isidentifier():
                raise InputError(
                    f"dynamic of {name}, axis {axis}: {symbol!r} is no name; give one such as 'T'"
                )
            if not 0 <= axis < value.dim():
                raise InputError(f"input {name} has {value.dim()} axes, so none is {axis}; count from 0")
            if value.shape[axis] < 2:
                raise InputError(
                    f"input {name}, axis {axis}: the example has {value.shape[axis]} frames, and PyTorch takes a "
                    "length of 0 or 1 for a constant; give an example of more frames"
                )
    return Call(arguments, axes, positional)


def _input_name(key: str | int, arguments: Mapping[str, Any]) -> str:
    names = list(arguments)
    if isinstance(key, int) and 0 <= key < len(names):
        return names[key]
    if key not in arguments:
        raise InputError(f"dynamic speaks of input {key!r}; the examples are of {', '.join(names) or 'none'}")
    return str(key)


@contextlib.contextmanager
def _evaluating(module: Any) -> Generator[None]:
    """The module and all in it in eval mode."""
    modes = [(inner, inner.training) for inner in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for inner, training in modes:
            inner.training = training


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Keep to itself what the exporter says of its own parts."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.utils", "torch.fx", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def _exported(torch: Any, module: Any, call: Call, opset: int | None, title: str) -> ModelProto:
    """By the exporter that follows torch.export."""
    shapes = {name: dict(call.axes[name]) if name in call.axes else None for name in call.arguments}
    try:
        made = torch.onnx.export(
            module,
            tuple(call.arguments.values()) if call.positional else (),
            kwargs=None if call.positional else call.arguments,
            dynamic_shapes=shapes if call.axes else None,
            opset_version=opset,
            dynamo=True,
            verbose=False,
        )
    except Exception as error:
        raise LoadError(_failure(error, call, title)) from error
    return cast("ModelProto", made.model_proto)


def _traced(
    torch: Any, module: Any, call: Call, opset: int | None, title: str
) -> tuple[ModelProto, list[str]]:
    """By the older exporter, which traces the example; and what it warns of."""
    file = io.BytesIO()
    tensors = [name for name, value in call.arguments.items() if isinstance(value, torch.Tensor)]
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            torch.onnx.export(
                module,
                tuple(call.arguments.values()) if call.positional else (),
                file,
                kwargs=None if call.positional else call.arguments,
                input_names=tensors,
                dynamic_axes=call.axes,
                opset_version=opset,
                dynamo=False,
            )
    except Exception as error:
        raise LoadError(_failure(error, call, title)) from error
    notes = [
        "onnxscript is not installed, so the older exporter was used; pip install onnxscript for the newer one, which "
        "also notices loops over time that are written for the example's length alone"
    ]
    notes += [
        f"the exporter says that a length may be baked in: {_COLOUR.sub('', str(entry.message))}"
        for entry in told
        if issubclass(entry.category, torch.jit.TracerWarning)
    ]
    return ModelProto.FromString(file.getvalue()), notes


def _failure(error: BaseException, call: Call, title: str) -> str:
    """What went wrong, in the exporter's own words, and what to do."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    reason = _COLOUR.sub("", str(cause)).strip()[:LONGEST_REASON] or type(cause).__name__
    fixed = _FIXED.findall(reason)
    if fixed:
        listed = "; ".join(
            f"axis {axis} of {name} ({call.axes.get(name, {}).get(int(axis), 'no symbol')}) is fixed to {size}"
            for size, name, axis in fixed
        )
        return f"{title}: PyTorch's exporter has baked a length in: {listed}; {BAKED_HELP}"
    if any(word in reason for word in _BAKED_WORDS):
        return f"{title}: PyTorch's exporter has baked a length in: {reason}\n{BAKED_HELP}"
    return (
        f"{title}: PyTorch's exporter fails: {type(cause).__name__}: {reason}\n"
        "see that the module runs on the example, then that torch.export.export takes it"
    )


def _require_dynamic(proto: ModelProto, call: Call, title: str) -> None:
    """Raises LoadError where an axis that was to be dynamic is a number, or an input is gone."""
    inputs = {value.name: value.type.tensor_type.shape.dim for value in proto.graph.input}
    for name, wanted in call.axes.items():
        if name not in inputs:
            raise LoadError(
                f"{title}: the exporter has left input {name} out, as nothing reads it; leave it out of dynamic"
            )
        for axis, symbol in wanted.items():
            dim = inputs[name][axis]
            if not dim.dim_param:
                raise LoadError(
                    f"{title}: PyTorch's exporter has baked a length in: axis {axis} of {name} ({symbol}) is fixed "
                    f"to {dim.dim_value}; {BAKED_HELP}"
                )
