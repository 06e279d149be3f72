"""PyTorch's own exporters, in memory."""

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any, cast

from pulse.errors import LoadError
from pulse.onnx.proto import ModelProto
from pulse.torch.advice import BAKED_HELP, plain_message
from pulse.torch.arguments import ModuleCall
from pulse.torch.recurrent import keep_recurrent_layers

_FIXED = re.compile(r"static shape of (\d+) for dimension inputs\['(\w+)'\]\.shape\[(\d+)\]")
_BAKED_WORDS = ("static shape", "specialized", "Constraints violated")


def export(
    torch: Any, module: Any, call: ModuleCall, opset: int | None, title: str
) -> tuple[ModelProto, list[str]]:
    """The exported model, and notes for the user. Raises LoadError."""
    if find_spec("onnxscript") is not None:
        proto, notes = _exported(torch, module, call, opset, title), list[str]()
    else:
        proto, notes = _traced(torch, module, call, opset, title)
    _require_dynamic(proto, call, title)
    proto.graph.name = title
    return proto, notes


@contextlib.contextmanager
def silence_exporter() -> Generator[None]:
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


def _exported(torch: Any, module: Any, call: ModuleCall, opset: int | None, title: str) -> ModelProto:
    """By the exporter that follows torch.export."""
    shapes = {name: dict(call.axes[name]) if name in call.axes else None for name in call.arguments}
    positional, named = call.filled(torch, {})
    try:
        with keep_recurrent_layers(torch):
            made = torch.onnx.export(
                module,
                positional,
                kwargs=named or None,
                dynamic_shapes=shapes if call.axes else None,
                opset_version=opset,
                dynamo=True,
                verbose=False,
            )
    except Exception as error:
        raise LoadError(_failure(error, call, title)) from error
    return cast("ModelProto", made.model_proto)


def _traced(
    torch: Any, module: Any, call: ModuleCall, opset: int | None, title: str
) -> tuple[ModelProto, list[str]]:
    """By the older exporter, which traces the example; and what it warns of."""
    file = io.BytesIO()
    positional, named = call.filled(torch, {})
    names = [name for name, leaf in call.leaves(torch).items() if leaf is not None]
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.onnx.export(
                module,
                positional,
                file,
                kwargs=named or None,
                input_names=names,
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
        f"the exporter says that a length may be baked in: {plain_message(entry.message)}"
        for entry in caught
        if issubclass(entry.category, torch.jit.TracerWarning)
    ]
    return ModelProto.FromString(file.getvalue()), notes


def _failure(error: BaseException, call: ModuleCall, title: str) -> str:
    """What went wrong, in the exporter's own words, and what to do."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    reason = plain_message(cause) or type(cause).__name__
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


def _require_dynamic(proto: ModelProto, call: ModuleCall, title: str) -> None:
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
