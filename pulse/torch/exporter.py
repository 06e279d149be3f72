"""PyTorch's own exporter, in memory."""

import contextlib
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from pulse.errors import InputError, LoadError
from pulse.facts import Array
from pulse.onnx.proto import ModelProto, TensorProto
from pulse.torch.advice import BAKED_ADVICE, COMPLEX_ADVICE, DATA_ADVICE, author_line, plain_message
from pulse.torch.arguments import ModuleCall, name_paths
from pulse.torch.lengths import split_multiple
from pulse.torch.preservation import ModuleState, refill_dict
from pulse.torch.replacements.branches import record_branches
from pulse.torch.replacements.filling_caches import use_whole_caches
from pulse.torch.replacements.functions import replace_functions
from pulse.torch.replacements.given_masks import skip_mask_checks
from pulse.torch.replacements.layer_stack import restore_layer_stack
from pulse.torch.replacements.loop_scans import LOOP_ADVICE, roll_loops
from pulse.torch.replacements.loops import LoopTracer
from pulse.torch.replacements.named_axes import keep_named_axes
from pulse.torch.replacements.new_buffers import hide_new_buffers
from pulse.torch.replacements.partial_writes import translations
from pulse.torch.replacements.recurrent import write_recurrent_layers
from pulse.torch.replacements.sizes import trace_sizes
from pulse.torch.replacements.small_constants import keep_small_constants
from pulse.torch.replacements.traced_ints import trace_ints
from pulse.torch.replacements.weights import take_weights

_FIXED_AXIS = re.compile(r"static shape of (\d+) for dimension inputs\['(\w+)'\]\.shape\[(\d+)\]")
_OPERATOR = re.compile(r"op='\w+\.(\w+)'")
OPEN_LOOP = (
    "only some steps of a loop over frames are exported, and those of the one in {lines} were not joined"
)
_BAKED_WORDS = ("static shape", "specialized", "Constraints violated")


class Export(NamedTuple):
    """An exported file.

    proto     the file
    trims     whether a slice drops a number of last frames that depends on the length
    tensors   initializers whose data is not in the file, by name
    branches  lines of the module's code whose conditions on lengths the example has decided
    flips     those of them whose conditions change for all long inputs -> the first such length
    """

    proto: ModelProto
    trims: bool
    tensors: Mapping[str, Array]
    branches: list[str]
    flips: Mapping[str, int]


class ExportRequest(NamedTuple):
    """A request for an export.

    torch    the package
    module   the module, in eval mode
    call     its example and its dynamic axes
    opset    the version of ONNX; None: the exporter's own choice
    title    the name of the module, for messages
    outputs  their names; None: the exporter names them
    state    what the module holds
    """

    torch: Any
    module: Any
    call: ModuleCall
    opset: int | None
    title: str
    outputs: list[str] | None
    state: ModuleState

    def run(self) -> Any:
        """Return the module's result for the example. Raises InputError: the module raises."""
        return run_example(self.torch, self.module, self.call, self.title)


@contextlib.contextmanager
def _export_calls(torch: Any, module: Any, call: ModuleCall) -> Generator[None]:
    """Within this context, change the module's calls to those that the exporter can follow.

    Axes of one symbol have one size: PyTorch would find that only where they meet.
    Inputs that are complex are joined from pairs of real numbers, of which the exporter knows the sizes.
    Outputs that are inputs are copied: the exporter leaves such inputs out. Outputs that are not tensors are dropped.
    What a call stores, such as a table of positions for the next one, is removed: it holds no numbers.
    """
    attributes: list[tuple[dict[str, Any], dict[str, Any]]] = []
    tree = torch.utils._pytree
    are_complex = [_is_complex_tensor(torch, leaf) for leaf in tree.tree_leaves(call.fill(torch, {}))]

    def prepare(_: Any, positional: Any, keywords: Any) -> Any:
        _unite_sizes(torch, call, {**dict(zip(call.arguments, positional)), **keywords})
        attributes.clear()
        for submodule in module.modules():
            for now in cast("list[dict[str, Any]]", [submodule._buffers, vars(submodule)]):
                attributes.append((now, dict(now)))
        leaves, structure = tree.tree_flatten((positional, keywords))
        joined = [
            torch.view_as_complex(leaf) if is_pair and not leaf.is_complex() else leaf
            for leaf, is_pair in zip(leaves, are_complex)
        ]
        return tree.tree_unflatten(joined, structure)

    def copy_call(_: Any, positional: Any, keywords: Any, result: Any) -> Any:
        for now, before in attributes:
            refill_dict(now, before)
        arguments = {id(leaf) for leaf in tree.tree_leaves((positional, keywords))}

        def copy_of(leaf: Any) -> Any:
            if not torch.is_tensor(leaf):
                return None
            return leaf.clone() if id(leaf) in arguments else leaf

        return tree.tree_map(copy_of, result)

    hooks = (
        module.register_forward_pre_hook(prepare, prepend=True, with_kwargs=True),
        module.register_forward_hook(copy_call, with_kwargs=True),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _is_complex_tensor(torch: Any, value: Any) -> bool:
    return bool(torch.is_tensor(value) and value.is_complex())


def _unite_sizes(torch: Any, call: ModuleCall, arguments: Mapping[str, Any]) -> None:
    """Let the exporter know which sizes of the inputs are equal, or multiples of others or of a number."""
    sizes = {
        symbol: [
            arguments[name].shape[axis]
            for name, axes in call.axes.items()
            for axis in axes
            if axes[axis] == symbol
        ]
        for symbol in call.frames
    }
    for symbol, equal in sizes.items():
        factor, base = split_multiple(symbol)
        for size in equal:
            if base in sizes:
                torch._check(size == factor * sizes[base][0])
            else:
                torch._check(size == equal[0])
                torch._check(size % factor == 0)


def run_example(torch: Any, module: Any, call: ModuleCall, title: str) -> Any:
    """Return the module's result for the example. Raises InputError: the module raises."""
    positional, named = call.fill(torch, {})
    try:
        with torch.no_grad():
            return module(*positional, **named)
    except Exception as error:
        reason = f"{type(error).__name__}: {plain_message(error)}"
        raise InputError(f"{title} does not run on the example: {reason}") from error


def name_outputs(torch: Any, result: Any) -> list[str] | None:
    """Return the keys of outputs that are a dict; None for others."""
    if not isinstance(result, Mapping):
        return None
    leaves, _ = torch.utils._pytree.tree_flatten_with_path(dict(cast("Mapping[str, Any]", result)))
    return name_paths([path for path, leaf in leaves if torch.is_tensor(leaf)])


def _input_names(torch: Any, call: ModuleCall) -> list[str]:
    """Return the names of the inputs, as the module writes them: an exporter's own are in lower case."""
    return [name for name, leaf in call.leaves(torch).items() if torch.is_tensor(leaf)]


def _mend_squeezes(proto: ModelProto) -> None:
    """Remove squeezes of axes longer than 1: PyTorch (2.13) writes them as nodes, although ONNX refuses them."""
    from onnx.numpy_helper import to_array

    sizes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*proto.graph.value_info, *proto.graph.input)
    }
    axes = {
        initializer.name: to_array(initializer)
        for initializer in proto.graph.initializer
        if initializer.data_type == TensorProto.INT64
    }
    for node in proto.graph.node:
        if node.op_type != "Squeeze" or len(node.input) < 2 or node.input[0] not in sizes:
            continue
        shape, axis = sizes[node.input[0]], axes.get(node.input[1])
        if axis is not None and axis.size == 1 and shape and shape[int(axis.ravel()[0])] > 1:
            node.op_type = "Identity"
            del node.input[1:]


def export(request: ExportRequest) -> Export:
    """Return the exported model. Raises LoadError: the exporter fails."""
    torch, module, call, state = request.torch, request.module, request.call, request.state
    shapes = {name: dict(call.axes[name]) if name in call.axes else None for name in call.arguments}

    def as_pairs(leaf: Any) -> Any:
        return torch.view_as_real(leaf) if _is_complex_tensor(torch, leaf) else leaf

    positional, named = torch.utils._pytree.tree_map(as_pairs, call.fill(torch, {}))
    if positional and isinstance(positional[-1], dict):
        # PyTorch would take a dict as the last argument for the named arguments
        no_names: dict[str, Any] = {}
        positional = (*positional, no_names)
    loops = LoopTracer(torch)
    with (
        write_recurrent_layers(torch, loops),
        trace_sizes(torch, module, loops),
        trace_ints(torch, module, request.run, state.restore_eval),
        keep_small_constants(),
        keep_named_axes(torch),
        skip_mask_checks(torch),
        replace_functions(torch, module, loops) as functions,
        hide_new_buffers(torch, module),
        restore_layer_stack(),
        use_whole_caches(torch, module),
        _export_calls(torch, module, call),
        record_branches(torch) as conditions,
    ):
        with _failures_as_load_errors(call, request.title, functions.complex_calls, loops):
            onnx_program = torch.onnx.export(
                module,
                positional,
                input_names=_input_names(torch, call),
                output_names=request.outputs,
                kwargs=named or None,
                dynamic_shapes=shapes if call.axes else None,
                opset_version=request.opset,
                dynamo=True,
                verbose=False,
                optimize=False,
                custom_translation_table=translations(torch),
            )
        loops.buffers.check_changes()
        roll_loops(onnx_program, loops.all_loops, request.title, loops.buffers.failures)
        with _failures_as_load_errors(call, request.title):
            onnx_program.optimize()
    tensors = take_weights(onnx_program, state)
    proto = cast("ModelProto", onnx_program.model_proto)
    _mend_squeezes(proto)
    _require_real_weights(proto, module, request.title)
    _require_dynamic(proto, call, request.title)
    proto.graph.name = request.title
    return Export(proto, functions.trims, tensors, conditions.lines, conditions.flips)


def _require_real_weights(proto: ModelProto, module: Any, title: str) -> None:
    """Raise LoadError if a parameter, a buffer or a constant is complex: ONNX has no operators for them."""
    kinds = TensorProto.COMPLEX64, TensorProto.COMPLEX128
    if not any(initializer.data_type in kinds for initializer in proto.graph.initializer):
        return
    weights = [*module.named_parameters(), *module.named_buffers()]
    names = [name for name, value in weights if value.is_complex()]
    listed = f"{', '.join(names)} of the module" if names else "a constant of the module"
    raise LoadError(
        f"{title}: {listed} is complex, and ONNX has no complex numbers; keep it as pairs of real numbers, "
        "torch.view_as_real(value), and write torch.view_as_complex(self.pairs) where it is used"
    )


@contextlib.contextmanager
def _failures_as_load_errors(
    call: ModuleCall,
    title: str,
    complex_calls: Sequence[tuple[str, str]] = (),
    loops: LoopTracer | None = None,
) -> Generator[None]:
    """Raise LoadError in place of any error of PyTorch's exporter, which promises none.

    complex_calls  the functions of complex tensors that are not replaced, and the lines that call them
    loops          the loops over frames, of which the exporter has seen some steps
    """
    try:
        yield
    except LoadError:
        raise
    except Exception as error:
        reason = _failure(error, call, title, complex_calls)
        lines = ", ".join(loop.origin for loop in loops.open_loops) if loops else ""
        raise LoadError(
            f"{reason}; {OPEN_LOOP.format(lines=lines)}; {LOOP_ADVICE}" if lines else reason
        ) from error


def _failure(
    error: BaseException, call: ModuleCall, title: str, complex_calls: Sequence[tuple[str, str]]
) -> str:
    """Return the text of an export's failure: the exporter's own words, and what to do."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    reason = plain_message(cause) or type(cause).__name__
    if isinstance(cause, LoadError):
        return f"{title}: {reason}"
    fixed_axes = _FIXED_AXIS.findall(reason)
    if fixed_axes:
        listed = "; ".join(
            f"axis {axis} of {name} ({call.axes.get(name, {}).get(int(axis), 'no symbol')}) is fixed to {size}"
            for size, name, axis in fixed_axes
        )
        return f"{title}: PyTorch's exporter has baked a length in: {listed}; {BAKED_ADVICE}"
    if any(word in reason for word in _BAKED_WORDS):
        return f"{title}: PyTorch's exporter has baked a length in: {reason}; {BAKED_ADVICE}"
    if "data-dependent" in reason:
        line = author_line(cause)
        return (
            f"{title}: {f'in {line}, ' if line else ''}a size or a condition depends on the values of a tensor: "
            f"{reason}; {DATA_ADVICE}"
        )
    if "complex" in reason:
        function = _OPERATOR.search(reason)
        lines = [
            place for name, place in complex_calls if function and f"{function[1]}_".startswith(f"{name}_")
        ]
        where = (
            f"complex numbers in {lines[0]} ({function[1]})" if lines and function else "complex numbers here"
        )
        return f"{title}: PyTorch's exporter does not support {where}: {reason}; {COMPLEX_ADVICE}"
    return (
        f"{title}: PyTorch's exporter fails: {type(cause).__name__}: {reason}; "
        "see that the module runs on the example, then that torch.export.export takes it"
    )


def _require_dynamic(proto: ModelProto, call: ModuleCall, title: str) -> None:
    """Raise LoadError if an axis that should be dynamic is a number, or an input is missing."""
    inputs = {value.name: value.type.tensor_type.shape.dim for value in proto.graph.input}
    for name, symbols in call.axes.items():
        if name not in inputs:
            raise LoadError(f"{title}: no output depends on input {name}; omit it from dynamic")
        for axis, symbol in symbols.items():
            dim = inputs[name][axis]
            if not dim.dim_param:
                raise LoadError(
                    f"{title}: PyTorch's exporter has baked a length in: axis {axis} of {name} ({symbol}) is fixed "
                    f"to {dim.dim_value}; {BAKED_ADVICE}"
                )
