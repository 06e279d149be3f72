"""Export PyTorch modules with PyTorch's own exporter, in memory, and compare each model with its module."""

import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pulse.errors import FactError, InputError, PulseWarning
from pulse.loading.format import read_onnx
from pulse.models import Model, TypedModel
from pulse.support.mapping import LARGE, let_heap_go, let_pages_go
from pulse.tolerance import offline
from pulse.torch.advice import describe_branches
from pulse.torch.arguments import Dynamic, ModuleCall, read_call
from pulse.torch.axes import NO_TIME, Axes, describe_time, find_time
from pulse.torch.comparison import Comparison
from pulse.torch.exporter import ExportRequest, export, name_outputs, run_example
from pulse.torch.length_inputs import describe_lengths, follow_lengths
from pulse.torch.lengths import read_lengths
from pulse.torch.module import (
    ModuleOracle,
    computing_in,
    float_types,
    method_module,
    samples,
    tensors,
)
from pulse.torch.preservation import preserve_state
from pulse.torch.silence import silence_exporter
from pulse.torch.states import (
    BUFFERS,
    describe_states,
    find_buffers,
    find_states,
    keep_states,
    name_results,
    require_equal_calls,
    with_buffers,
)

_EXPORT = threading.RLock()
"""One export at a time: PyTorch's exporter changes the process while it runs."""


def from_torch(
    module: Any,
    example: Any,
    dynamic: Dynamic | None = None,
    opset: int | None = None,
    compare: bool = True,
    lengths: Sequence[Mapping[str, int]] | None = None,
    method: str = "forward",
    states: Mapping[str, Any] | None = None,
) -> Model:
    """The model of a PyTorch module.

    Exporters may silently write a model that is right only for the example's length. So module and model run
    on a shorter and a longer input for each symbol of ``dynamic`` (without any, on the example), and all outputs must
    agree. These inputs are frames of the example in random order, or noise where all its values are alike. Where the
    module refuses a length, others are tried. A model that is wrong only at lengths that were not tried is not found.

    module   an ``nn.Module``; it runs in eval mode without gradients, and afterwards its modes, parameters, buffers and
             attributes (tensors, lists and dicts) and PyTorch's random numbers are as they were
    example  what its ``forward`` takes: a tensor, a tuple of them, or a dict by the parameters' names
    dynamic  the axes of any length and their names, by the input's name or place: ``{"x": {2: "T"}}``; ``{}``: none.
             By default the axis along which the module runs at another length
    opset    the version of ONNX to export to; the exporter's own choice by default
    compare  False: the model as the exporter wrote it, compared with nothing
    lengths  what to compare at, in frames of each symbol: ``[{"T": 4000}, {"T": 9000}]``; a symbol that is not named
             has the example's length. Found by trial by default
    method   what is called in place of ``forward``, such as "encode"
    states   of a module that takes one chunk in each call and returns its caches: parameter -> its next value in the
             result, a place of a tuple or a key of a dict: ``{"cache": 1}``. They begin with the example's values,
             and the model is one of chunks. If no axis is time, states are found, and buffers that a call assigns
    Raises   InputError: torch is missing, ``example``, ``dynamic`` or ``lengths`` do not fit ``forward``, or the module
             runs at no other length than the example's, or along several axes;
             LoadError: the exporter fails, or has fixed a dynamic axis to the example's length, or the model differs
             from the module: the first output, frame and value are named; or the module draws random numbers;
             FactError: as in ``analyse``
    Warns    PulseWarning: the module runs at no longer input than the example, of those that were tried
    """
    torch = _torch()
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
        names = ", ".join(sorted(str(each).removeprefix("torch.") for each in others))
        _warn(
            title,
            [f"it computes in {names}; the model computes in f32, and is compared with the module in f32"],
        )
    with _EXPORT, preserve_state(torch, module, call) as state:
        with silence_exporter(), computing_in(torch, module, f32):
            result = run_example(torch, module, call, title)
        state.begin()
        state_leaves = find_states(torch, call, result, title, states)
        own = {each.parameter for each in state_leaves}

        def time_of(module: Any, call: ModuleCall) -> Axes:
            oracle = ModuleOracle(torch, module, call, state.begin, [], f32)
            return find_time(title, oracle, tensors(torch, call, own))

        with silence_exporter(), computing_in(torch, module, f32):
            module, call, lengths_of = follow_lengths(
                torch, module, call, time_of if dynamic is None else None
            )
            if lengths_of:
                result = run_example(torch, module, call, title)
                state_leaves = find_states(torch, call, result, title, states)
        _warn(title, describe_lengths(lengths_of))
        if dynamic is None:
            with silence_exporter():
                call = call if call.axes else replace(call, axes=time_of(module, call))
            _warn(title, [describe_time(call.axes)] if call.axes else [])
        compared_lengths = read_lengths(lengths, call.frames)
        if call.axes and states is None:
            state_leaves = []
        else:
            with silence_exporter(), computing_in(torch, module, f32):
                buffers = find_buffers(torch, module, call, state.begin, title)
                if buffers:
                    module, call = with_buffers(torch, module, call, buffers)
                    result = run_example(torch, module, call, title)
                    state_leaves += find_states(torch, call, result, title, {BUFFERS: 1})
        outputs = name_results(torch, result, state_leaves) if state_leaves else name_outputs(torch, result)
        state.begin()
        with silence_exporter(), computing_in(torch, module, f32):
            onnx_export = export(ExportRequest(torch, module, call, opset, title, outputs, state))
        _warn(title, onnx_export.notes)
        read = read_onnx(onnx_export.proto, ignore_value_info=True, tensors=onnx_export.tensors)
        model = keep_states(read, state_leaves)
        _warn(title, describe_states(model))
        _warn(title, [] if call.axes or model.variables or dynamic is not None else [NO_TIME])
        if compare:
            with silence_exporter():
                typed = _analyse(model, title, onnx_export.branches)
                examples = samples(torch, call, list(typed.inputs), title)
                oracle, precise = (
                    ModuleOracle(torch, module, call, state.begin, list(typed.outputs), dtype)
                    for dtype in (f32, torch.float64)
                )
                comparison = Comparison(
                    title,
                    oracle,
                    offline(typed),
                    examples,
                    call.list_axes(),
                    precise=precise,
                    bind=typed.bind,
                    branches=onnx_export.branches,
                )
                notes = comparison.require_equal(compared_lengths, onnx_export.trims)
                if model.variables:
                    require_equal_calls(title, oracle, typed, examples, model.variables)
            _warn(title, notes)
    for tensor in onnx_export.tensors.values():
        let_pages_go(tensor)
    if sum(tensor.nbytes for tensor in onnx_export.tensors.values()) >= LARGE:
        let_heap_go()
    return model


def _analyse(model: Model, title: str, branches: Sequence[str]) -> TypedModel:
    """The typed model. Raises FactError, with the conditions on lengths that the example has decided."""
    try:
        return model.analyse()
    except FactError as error:
        if not branches:
            raise
        raise FactError(f"{title}: {error}; {describe_branches(branches)}") from error


def _warn(title: str, notes: Sequence[str]) -> None:
    for note in notes:
        warnings.warn(f"{title}: {note}", PulseWarning, stacklevel=3)


def _torch() -> Any:
    if find_spec("torch") is None:
        raise InputError(
            "from_torch needs PyTorch; pip install 'pulse-stream[torch]', or export to ONNX where PyTorch is and load "
            "the file with pulse.load"
        )
    return import_module("torch")
