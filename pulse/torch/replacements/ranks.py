"""Medians and other values by their rank, which PyTorch's exporter does not write, as sorted values."""

from typing import Any


def median_along_axis(torch: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return ``x.median(dim)``, the lower one of two middle values; None for the median of all elements.

    NaN counts as the largest value, whereas PyTorch's median of values with a NaN is NaN.
    """
    if type(dim) is not int or not x.dim():
        return None
    return torch.return_types.median(_take_rank(x, (x.shape[dim] + 1) // 2, dim, keepdim))


def kth_value(torch: Any, x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Return ``x.kthvalue(k, dim)``; None for a single value."""
    return torch.return_types.kthvalue(_take_rank(x, k, dim, keepdim)) if x.dim() else None


def _take_rank(x: Any, rank: int, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """Return the values of a rank, counted from 1, and where they are."""
    values, indices = (part.narrow(dim, rank - 1, 1) for part in x.sort(dim))
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))
