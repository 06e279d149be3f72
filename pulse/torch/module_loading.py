"""From a PyTorch module to a model: ``from_torch``, and the same as a loaded model."""

import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pulse.errors import InputError, PulseWarning
from pulse.loading.load import load
from pulse.loading.loaded_model import LoadedModel
from pulse.models import Model
from pulse.support.mapping import MIN_MAPPED_BYTES, release_heap, release_pages
from pulse.support.wording import choose_wording
from pulse.torch.arguments import Dynamic, read_call
from pulse.torch.axes import describe_no_time
from pulse.torch.conversion import Conversion
from pulse.torch.lengths import read_lengths
from pulse.torch.module import float_types, method_module
from pulse.torch.module_original import ModuleOriginal
from pulse.torch.preservation import preserve_state

_EXPORT_LOCK = threading.RLock()
"""One export at a time: PyTorch's exporter changes the process while it runs."""


def from_torch(
    module: Any,
    example: Any,
    dynamic: Dynamic | None = None,
    *,
    opset: int | None = None,
    compare: bool = True,
    lengths: Sequence[Mapping[str, int]] | None = None,
    method: str = "forward",
    states: Mapping[str, Any] | None = None,
) -> Model:
    """Return the model of a PyTorch module.

    An exporter may write a model that is right only for the example's length, without an error. So the module and the
    model run on a shorter and a longer input for each symbol of ``dynamic``, or on the example if there is none, and
    all outputs must agree. These inputs are frames of the example in random order, or noise if all its values are
    equal. If the module refuses a length, others are tried. Errors that occur only at other lengths are not found.

    module   an ``nn.Module``; it runs in eval mode without gradients, and afterwards its modes, parameters, buffers and
             attributes (tensors, lists and dicts) and PyTorch's random numbers are as they were
    example  the arguments of its ``forward``: a tensor, a tuple of tensors, or a dict by the parameters' names
    dynamic  the names of the axes whose length may vary, by the input's name or position: ``{"x": {2: "T"}}``; ``{}``
             for none. By default the one axis along which the module also runs at another length
    opset    the version of ONNX operators to export to; by default the exporter chooses
    compare  whether the model is compared with the module
    lengths  the lengths at which they are compared, in frames of each symbol: ``[{"T": 4000}, {"T": 9000}]``. A symbol
             without a length keeps its length in the example; multiples (``32*T``) follow their name. By default
             they are found by trial
    method   the method that is called in place of ``forward``, such as "encode"
    states   the states of a module that takes one chunk per call and returns its caches: parameter -> the position
             (in a tuple) or the key (in a dict) of its next value in the result, as in ``{"cache": 1}``. States begin
             with the example's values, and the model is called chunk by chunk. If no axis is time, states are found,
             as are buffers that a call assigns
    Raises   InputError: torch is missing, ``example``, ``dynamic`` or ``lengths`` do not fit ``forward``, or the module
             runs at no other length than the example's, or along several axes;
             LoadError: the exporter fails, or has fixed a dynamic axis to the example's length, or the model differs
             from the module: the first output, frame and value are named; or the module draws random numbers;
             FactError: as in ``analyse``
    Warns    PulseWarning: the module runs at no longer input than the example, of those that were tried
    """
    return convert_module(
        module=module,
        example=example,
        dynamic=dynamic,
        opset=opset,
        compare=compare,
        lengths=lengths,
        method=method,
        states=states,
    )[0]


def load_module(module: Any, example: Any, keywords: Mapping[str, Any], **options: Any) -> LoadedModel:
    """Return a module as a loaded model; proofs of the model run the module too.

    keywords  other arguments of ``from_torch``
    options   arguments of ``pulse.load``
    """
    model, original = convert_module(module, example, **keywords)
    return replace(load(model, **options), original=original)


def convert_module(
    module: Any,
    example: Any,
    dynamic: Dynamic | None = None,
    *,
    opset: int | None = None,
    compare: bool = True,
    lengths: Sequence[Mapping[str, int]] | None = None,
    method: str = "forward",
    states: Mapping[str, Any] | None = None,
) -> tuple[Model, ModuleOriginal]:
    """Run ``from_torch``; return the model, and the original module with which a proof compares the streams."""
    torch = import_torch()
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"from_torch takes a torch.nn.Module, not {type(module).__name__}; give the module itself"
        )
    title = type(module).__name__
    if method != "forward":
        title, module = f"{title}.{method}", method_module(torch, module, method)
    call = read_call(torch, module, title, example, dynamic or {})
    others = float_types(torch, module, call) - {torch.float32}
    f32 = torch.float32 if others else None
    if others:
        call = call.in_type(torch, torch.float32)
        names = ", ".join(sorted(str(other).removeprefix("torch.") for other in others))
        _warn(
            title,
            [f"it computes in {names}; the model computes in f32, and is compared with the module in f32"],
        )
    with _EXPORT_LOCK, preserve_state(torch, module, call) as state:
        conversion = Conversion(torch, module, call, title, state, f32, states)
        _warn(title, conversion.follow_lengths(dynamic is None))
        if dynamic is None:
            _warn(title, conversion.find_time())
        compared_lengths = read_lengths(lengths, conversion.call.frames)
        conversion.keep_buffers()
        times = conversion.call.axes or conversion.state_leaves or dynamic is not None
        notes = [] if times else [describe_no_time()]
        try:
            model, onnx_export = conversion.convert(opset, compared_lengths, compare, notes)
        finally:
            _warn(title, notes)
    for tensor in onnx_export.tensors.values():
        release_pages(tensor)
    if sum(tensor.nbytes for tensor in onnx_export.tensors.values()) >= MIN_MAPPED_BYTES:
        release_heap()
    return model, conversion.original(model)


def _warn(title: str, notes: Sequence[str]) -> None:
    for note in notes:
        warnings.warn(f"{title}: {note}", PulseWarning, stacklevel=4)


def import_torch() -> Any:
    """Import PyTorch. Raises InputError: it is missing, or onnxscript, with which it exports."""
    for package, name in (("torch", "PyTorch"), ("onnxscript", "onnxscript")):
        if find_spec(package) is None:
            raise InputError(
                f"a module needs {name}; pip install 'pulse-stream[torch]', or export to ONNX on a machine with "
                f"PyTorch and {choose_wording('load the file with pulse.load', 'give that file')}"
            )
    return import_module("torch")
