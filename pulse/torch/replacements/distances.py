"""Distances of all pairs of rows, which PyTorch's exporter does not support."""

from typing import Any

MAX_DIRECT_ROWS = 25
"""Maximum number of rows on each side whose distances PyTorch computes by their differences, unless asked."""


def pairwise_distances(
    torch: Any, x: Any, y: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Any:
    """Return ``torch.cdist``; None for p = 0. Euclidean ones of more than 25 rows are by a product of matrices.

    x, y     rows [..., N, D] and [..., M, D]
    Returns  [..., N, M]
    """
    few_rows = all(isinstance(rows, int) and rows <= MAX_DIRECT_ROWS for rows in (x.shape[-2], y.shape[-2]))
    if p == 2 and not compute_mode.startswith("donot") and not (few_rows and "necessary" in compute_mode):
        squares = x.square().sum(-1, keepdim=True) + y.square().sum(-1).unsqueeze(-2)
        return (squares - 2 * (x @ y.transpose(-1, -2))).clamp_min(0).sqrt()
    if p == 0:
        return None
    differences = (x.unsqueeze(-2) - y.unsqueeze(-3)).abs()
    if p == float("inf"):
        return differences.amax(-1)
    if p == 1:
        return differences.sum(-1)
    return differences.square().sum(-1).sqrt() if p == 2 else differences.pow(p).sum(-1).pow(1 / p)
