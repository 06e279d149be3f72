# pyright: basic
"""Running sums of exponentials, which PyTorch's exporter scales by the maximum over all frames."""

from typing import Any

from pulse.torch.loops import Loops


def running_log_sums(torch: Any, loops: Loops, x: Any, dim: int) -> Any:
    """``torch.logcumsumexp`` over an axis of any length as a loop over its frames; None over a constant axis.

    The sum of each frame is scaled by the larger one of the frame and the sum before it.
    """
    frames = loops.result("unbind", torch.unbind, (x, dim), {})
    if frames is None:
        return None
    total, sums = torch.full(frames[0].shape, -torch.inf, dtype=x.dtype), list[Any]()
    for frame in frames:
        most = torch.maximum(total, frame)
        sum_ = most + torch.log(torch.exp(total - most) + torch.exp(frame - most))
        total = torch.where(most.abs() == torch.inf, most, sum_)
        loops.note([frame], {}, total)
        sums.append(total)
    return loops.result("stack", torch.stack, (sums, dim), {})
