# pyright: basic
"""Windows over frames, which PyTorch's exporter fixes to the example's length or takes from a table of indices."""

from typing import Any


def pool_maxima(
    torch: Any,
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return ``max_pool1d`` as the maxima of windows, or as the maximum of one row; None if its indices are requested.

    In ONNX a row that is shorter than a window may have a maximum. Windows have none there, as in PyTorch.
    """
    if return_indices:
        return None
    sizes = [single_value(option) for option in (kernel_size, stride or kernel_size, padding, dilation)]
    size, step, ends, spacing = sizes
    if ceil_mode or spacing != 1:
        rows = [(first, extent) for first, extent in zip((1, 1, 0, 1), sizes)]
        return torch.max_pool2d(x.unsqueeze(-2), *rows, ceil_mode).squeeze(-2)
    padded = torch.nn.functional.pad(x, (ends, ends), value=-torch.inf) if ends else x
    return padded.unfold(-1, size, step).amax(-1)


def convolve_by_own_kernels(
    torch: Any,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> Any:
    """Return ``conv1d`` of as many groups as there are frames, each with a kernel of its own; None for others.

    Filters that change from frame to frame are written so; in ONNX the number of groups is a constant.
    """
    sizes = [single_value(option) for option in (stride, padding, dilation)]
    is_plain = isinstance(groups, torch.SymInt) and bias is None and weight.shape[1] == 1 and sizes[2] == 1
    if not is_plain or isinstance(sizes[1], str) or weight.shape[0] != groups:
        return None
    windows = torch.nn.functional.pad(input, (sizes[1], sizes[1])).unfold(-1, weight.shape[-1], sizes[0])
    return (windows @ weight.transpose(1, 2)).squeeze(-1)


def strided_windows(torch: Any, x: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """Return ``as_strided`` as ``unfold`` of the last axis; None if it is not of windows of a contiguous tensor."""
    size, stride = tuple(size), tuple(stride)
    known_true = torch.fx.experimental.symbolic_shapes.statically_known_true
    if _is_shift(known_true, x, size, stride, storage_offset):
        return _shift_rows(torch, x)
    if storage_offset or len(size) != x.dim() + 1 or not x.is_contiguous() or x.storage_offset():
        return None
    alike = [
        (have, want) for have, want in zip((*x.shape[:-1], *x.stride()[:-1]), (*size[:-2], *stride[:-2]))
    ]
    step, last_step = stride[-2:]
    if (
        last_step != 1
        or isinstance(step, torch.SymInt)
        or not all(known_true(have == want) for have, want in alike)
    ):
        return None
    return x.unfold(-1, size[-1], step)[..., : size[-2], :]


def _is_shift(known_true: Any, x: Any, size: Any, stride: Any, offset: Any) -> bool:
    """Return whether row i of T gets its columns ``T - 1 - i + j``, as Conformers shift scores by distance."""
    if offset is None or len(size) != x.dim() or x.dim() < 2 or x.storage_offset():
        return False
    rows, row_stride, column_stride = x.shape[-2], *x.stride()[-2:]
    expected = (*x.shape[:-1], rows, *x.stride()[:-2], row_stride - column_stride, column_stride)
    return (
        known_true(x.shape[-1] == 2 * rows - 1)
        and known_true(offset == column_stride * (rows - 1))
        and all(known_true(have == want) for have, want in zip((*size, *stride), expected))
    )


def _shift_rows(torch: Any, x: Any) -> Any:
    """Return T columns of each of the T rows: in the first from T - 1 on, in each further one from a column earlier."""
    rows, columns = x.shape[-2:]
    padded = torch.nn.functional.pad(x, (1, 0)).reshape(*x.shape[:-2], columns + 1, rows)
    return padded[..., 1:, :].reshape(x.shape)[..., :rows]


def columns_of_full_width(
    torch: Any, x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Return ``functional.unfold`` for windows as wide as the images, whatever their width is; None for other windows.

    FullSubNet takes neighbouring bands so, with all frames in each window.
    """
    height, width = _pair(kernel_size)
    is_dense = (_pair(dilation), _pair(padding), _pair(stride)) == ((1, 1), (0, 0), (1, 1))
    if not is_dense or x.dim() != 4 or not isinstance(width, torch.SymInt) or width != x.shape[3]:
        return None
    batch, channels = x.shape[:2]
    windows = x.unfold(2, height, 1)  # batch, channels, windows, width, height
    return windows.permute(0, 1, 4, 3, 2).reshape(batch, channels * height * width, -1)


def single_value(value: Any) -> Any:
    """Return the first value of a tuple or a list, which has one for each axis; others as they are."""
    return value[0] if isinstance(value, tuple | list) and value else value


def _pair(value: Any) -> tuple[Any, Any]:
    first, second = value if isinstance(value, tuple | list) else (value, value)
    return first, second
