# pyright: basic
"""Replacements of PyTorch's functions that its exporter writes wrongly, or not at all."""

from typing import Any

from pulse.torch.replacements.author_place import author_place
from pulse.torch.replacements.complex_numbers import complex_result, is_complex, pairs_of_write
from pulse.torch.replacements.conditions import KnownConditions
from pulse.torch.replacements.distances import pairwise_distances
from pulse.torch.replacements.interpolation import interpolate
from pulse.torch.replacements.inverse_transform import inverse_transform
from pulse.torch.replacements.loop_numbers import mark_numbers
from pulse.torch.replacements.loop_steps import plain_number
from pulse.torch.replacements.loops import LoopTracer
from pulse.torch.replacements.moved_frames import fill_by_mask, roll_frames
from pulse.torch.replacements.ranks import kth_value, median_along_axis
from pulse.torch.replacements.running_results import RUNNING_FUNCTIONS, running_result
from pulse.torch.replacements.stable_functions import elementwise_result
from pulse.torch.replacements.windows import (
    columns_of_full_width,
    convolve_by_own_kernels,
    pool_maxima,
    strided_windows,
)


def replace_functions(torch: Any, module: Any, loops: LoopTracer) -> Any:
    """Return a context in which functions that the exporter writes wrongly, or not at all, are composed of others.

    Its ``trims`` says whether a slice counts back from the end a number of frames that depends on the length. Authors
    treat 0 frames as a separate case, and the export has only the example's case; to the model, 0 is no special case.
    The numbers of a range of numbers, which an exporter takes for data, are known (``tolist``). Its ``complex_calls``
    are the functions of complex tensors that are not replaced, with the lines that call them.
    """

    class Replace(torch.overrides.TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.trims = False
            self.complex_calls: list[tuple[str, str]] = []
            self._conditions = KnownConditions(torch, module)

        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            named = kwargs or {}
            name = getattr(function, "__name__", "")
            if name == "arange":
                args, named = _uniform_steps(torch, args, named)
            if name == "arange" and not named and all(type(arg) is int for arg in args):
                result = function(*args)
                result.tolist = lambda: list(range(*args))
                return result
            converted = self._conditions.convert(name, args)
            if converted is not None:
                return converted
            if name == "contiguous" and len(args) == 1 and not args[0].is_contiguous():
                # a copy in any case; the exporter may take it for the same tensor, and then its strides do not fit
                function, named = torch.clone, {"memory_format": torch.contiguous_format}
            if name == "slice" and any(_counts_back(torch, bound) for bound in args[2:4]):
                self.trims = True
                args = _wrap_bounds(torch, args)
            args = mark_numbers(torch, name, args)
            result = loops.result(name, function, args, named)
            if result is not None:
                return result
            args, named = torch.utils._pytree.tree_map(plain_number, (args, named))
            loops.check_call(function, args, named)
            result = self._running_result(name, args, named)
            if result is None:
                result = _replacement(torch, function, args, named)
            if result is None:
                if any(is_complex(torch, argument) for argument in args):
                    self.complex_calls.append((name.strip("_"), author_place()))
                result = function(*args, **named)
                if name == "slice" and len(args) > 3:
                    _keep_slice_size(torch, result, *args[1:])
            loops.record(args, named, result)
            if name == "__setitem__":
                loops.record_write(*args)
            return result

        def _running_result(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            """Return a running result; its loop is seen by this context. None for other calls."""
            if name not in RUNNING_FUNCTIONS or not args or named.keys() - {"dim", "dtype"}:
                return None
            with self:
                return running_result(torch, loops, name, *args, **named)

    return Replace()


def _keep_slice_size(torch: Any, result: Any, axis: int, start: Any, end: Any, step: Any = 1) -> None:
    """Let the exporter know the size of a slice with bounds by the length, ``table[100 - T : 99 + T]``."""
    size = result.shape[axis]
    is_counted = all(isinstance(bound, torch.SymInt) for bound in (size, start, end))
    if is_counted and step == 1 and torch.fx.experimental.symbolic_shapes.free_unbacked_symbols(size):
        torch._check(size == end - start)


def _counts_back(torch: Any, bound: Any) -> bool:
    """Return whether a bound of a slice is a size that is negative in the example."""
    return isinstance(bound, torch.SymInt) and bound.node.hint is not None and bound.node.hint < 0


def _uniform_steps(
    torch: Any, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of ``arange`` in one type: the exporter takes the type of the first for that of the result.

    Those of ``arange(0.0, size)`` are integers and a type: then the exporter writes a range.
    """
    floats = [arg for arg in args if isinstance(arg, float)]
    sizes = any(isinstance(argument, torch.SymInt) for argument in args)
    if floats and all(type(argument) in (int, float) for argument in args):
        return tuple(map(float, args)), named
    if not floats or not sizes or not all(number.is_integer() for number in floats):
        return args, named
    integers = tuple(int(argument) if isinstance(argument, float) else argument for argument in args)
    return integers, {"dtype": torch.get_default_dtype(), **named}


def _wrap_bounds(torch: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the slice (tensor, axis, start, end, step) with its bounds counted from the front."""
    x, axis, *bounds = args
    front = [x.shape[axis] + bound if _counts_back(torch, bound) else bound for bound in bounds[:2]]
    return (x, axis, *front, *bounds[2:])


def _replacement(torch: Any, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the replacement of a result; None if there is none."""
    match getattr(function, "__name__", ""):
        case "istft":
            return inverse_transform(torch, *args, **named)
        case "interpolate":
            return interpolate(torch, args, named)
        case "cdist":
            return pairwise_distances(torch, *args, **named)
        case "clamp" | "clip" | "clamp_" | "clip_":
            return _clamp_by_floats(torch, function, *args, **named)
        case "hamming_window":
            return _hamming_window(torch, *args, **named)
        case "median":
            return median_along_axis(torch, *args, **named)
        case "kthvalue":
            return kth_value(torch, *args, **named)
        case "conv1d" if isinstance(named.get("groups", args[-1]), torch.SymInt):
            return convolve_by_own_kernels(torch, *args, **named)
        case "max_pool1d":
            return pool_maxima(torch, *args, **named)
        case "unfold" if function is torch.nn.functional.unfold:
            return columns_of_full_width(torch, *args, **named)
        case "scaled_dot_product_attention" if args[0].dim() == 3:
            return _attend_without_heads(torch, function, args, named)
        case "roll":
            return roll_frames(torch, *args, **named)
        case "hstack" | "vstack" as name if args[0][0].dim() > 1:
            return torch.cat(args[0], 1 if name == "hstack" else 0)
        case "__setitem__":
            return _write(torch, *args)
        case "as_strided":
            return strided_windows(torch, *args, **named)
        case name:
            result = elementwise_result(torch, name, args, named)
            return complex_result(torch, function, args, named) if result is None else result


def _clamp_by_floats(torch: Any, function: Any, x: Any, min: Any = None, max: Any = None, **more: Any) -> Any:
    """Return ``clamp(x, 50, 8000.0)`` with both bounds as floats, which the exporter needs; None for other bounds."""
    if {type(min), type(max)} != {int, float} or not x.is_floating_point():
        return None
    return function(x, float(min), float(max), **more)


def _write(torch: Any, *args: Any) -> Any:
    """Write to a complex tensor, or by a mask, and return the tensor; None for other writes."""
    x, index, value = pairs_of_write(torch, *args)
    result = fill_by_mask(torch, x, index, value)
    if result is None and x is not args[0]:
        x[index], result = value, x
    return result


def _hamming_window(
    torch: Any, length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Any:
    """Return the window as a function of Hann's: ONNX's own has 25/46 in place of 0.54."""
    return alpha - beta + 2 * beta * torch.hann_window(length, periodic=periodic, **options)


def _attend_without_heads(torch: Any, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the attention of queries, keys and values without an axis of heads, which the exporter requires."""
    parameters = {
        **dict(zip(("query", "key", "value", "attn_mask", "dropout_p", "is_causal"), args)),
        **named,
    }
    wide = {
        name: value.unsqueeze(1) if torch.is_tensor(value) and value.dim() == 3 else value
        for name, value in parameters.items()
    }
    return function(**wide).squeeze(1)
