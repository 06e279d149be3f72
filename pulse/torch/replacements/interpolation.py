# pyright: basic
"""Interpolation that streams: linear, or by exact positions, as one node of ONNX.

PyTorch's exporter looks frames up one by one.
Frames that are left out are a slice, where the exporter fails.
"""

from typing import Any

from pulse.torch.replacements.windows import single_value


def interpolate(torch: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return ``F.interpolate`` of these arguments in a form that streams; None if the exporter's form is used."""
    for form in (_interpolate_linearly, _interpolate_exactly, _subsample_nearest):
        result = form(torch, args, named)
        if result is not None:
            return result
    return None


def _interpolate_linearly(torch: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return ``F.interpolate`` of these arguments, or None if it is not linear.

    If its factor depends on the length, it does not stream: as one node, its refusal names it.
    """
    arguments = {**dict(zip(("input", "size", "scale_factor", "mode", "align_corners"), args)), **named}
    x = arguments["input"]
    if arguments.get("mode") != "linear" or arguments.get("recompute_scale_factor") or x.dim() != 3:
        return None
    places = "align_corners" if arguments.get("align_corners") else "half_pixel"
    size = single_value(arguments.get("size"))
    factor = _factor(torch, x.shape[-1], size, single_value(arguments.get("scale_factor")))
    if factor is None and not isinstance(size, torch.SymInt):
        return None
    if factor is None:
        frames = size
        sizes = [torch.scalar_tensor(dim, dtype=torch.int64) for dim in (*x.shape[:2], size)]
        inputs = [x, None, None, torch.stack(sizes)]
    else:
        frames = x.shape[-1] * factor if factor == int(factor) else torch.sym_int(x.shape[-1] * factor)
        inputs = [x, None, torch.tensor([1.0, 1.0, float(factor)])]
    return torch.onnx.ops.symbolic(
        "Resize",
        inputs,
        {"mode": "linear", "coordinate_transformation_mode": places},
        dtype=x.dtype,
        shape=[x.shape[0], x.shape[1], frames],
    )


def _subsample_nearest(torch: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return ``F.interpolate`` that keeps one frame of each ``1 / scale_factor``; None for other arguments."""
    arguments = {**dict(zip(("input", "size", "scale_factor", "mode"), args)), **named}
    x, factors = arguments["input"], arguments.get("scale_factor")
    if arguments.get("mode", "nearest") != "nearest" or factors is None:
        return None
    if arguments.get("recompute_scale_factor"):
        return None
    axes = range(2, x.dim())
    factors = factors if isinstance(factors, tuple | list) else [factors] * len(axes)
    strides = [round(1 / factor) for factor in factors]
    if not all(stride >= 1 and factor == 1 / stride for stride, factor in zip(strides, factors)):
        return None
    for axis, stride in zip(axes, strides):
        x = torch.ops.aten.slice(x, axis, 0, x.shape[axis] // stride * stride, stride)
    return x


def _interpolate_exactly(torch: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return ``F.interpolate`` by the nearest frames of exact positions; None for other modes, or unknown factors.

    Frame i is frame floor((i + 0.5) / factor) of the input: the one that is nearest to the middle, or the later of two.
    """
    arguments = {**dict(zip(("input", "size", "scale_factor", "mode"), args)), **named}
    x, size, factor = arguments["input"], arguments.get("size"), arguments.get("scale_factor")
    if arguments.get("mode") != "nearest-exact" or arguments.get("recompute_scale_factor"):
        return None
    axes = range(2, x.dim())
    sizes, factors = (
        list(argument) if isinstance(argument, tuple | list) else [argument] * len(axes)
        for argument in (size, factor)
    )
    known = [
        _factor(torch, x.shape[axis], axis_size, axis_factor)
        for axis, axis_size, axis_factor in zip(axes, sizes, factors)
    ]
    if None in known:
        return None
    frames = [
        x.shape[axis] * factor if factor == int(factor) else torch.sym_int(x.shape[axis] * factor)
        for axis, factor in zip(axes, known)
    ]
    return torch.onnx.ops.symbolic(
        "Resize",
        [x, None, torch.tensor([1.0, 1.0, *map(float, known)])],
        {
            "mode": "nearest",
            "coordinate_transformation_mode": "half_pixel",
            "nearest_mode": "round_prefer_ceil",
        },
        dtype=x.dtype,
        shape=[*x.shape[:2], *frames],
    )


def _factor(torch: Any, frames: Any, size: Any, factor: Any) -> Any:
    """Return the number of output frames per input frame; None if it is not known for every length, or not exact."""
    if size is None:
        return int(factor) if factor == int(factor) else factor
    if not isinstance(frames, torch.SymInt) or not isinstance(size, torch.SymInt):
        is_multiple = isinstance(frames, int) and isinstance(size, int) and size % frames == 0
        return size // frames if is_multiple else None
    known_true = torch.fx.experimental.symbolic_shapes.statically_known_true
    ratio = size.node.hint // frames.node.hint
    return ratio if known_true(size == frames * ratio) else None
