"""Distances of all pairs of rows, which PyTorch's exporter does not support."""

from typing import Any


def pairwise_distances(
    torch: Any, x: Any, y: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Any:
    """Return ``torch.cdist``: Euclidean ones by a product of matrices, if ``compute_mode`` allows it; None for 0.

    x, y     rows [..., N, D] and [..., M, D]
    Returns  [..., N, M]
    """
    if p == 2 and not compute_mode.startswith("donot"):
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
