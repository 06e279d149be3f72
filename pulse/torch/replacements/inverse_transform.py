"""``torch.istft`` with a length that follows the input; PyTorch's exporter takes it for a constant."""

from typing import Any


def inverse_transform(
    torch: Any,
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Any = None,
    return_complex: bool = False,
) -> Any:
    """Return ``torch.istft`` whose length may be a size; None if no length is given, or for complex signals.

    Overlapping frames are added and divided by the sum of their squared windows, starting at half a frame. Zeros
    complete a length that is known to be beyond their end.
    """
    if length is None or onesided is False or return_complex:
        return None
    hop, span = hop_length or n_fft // 4, win_length or n_fft
    window = torch.ones(span) if window is None else window
    before = (n_fft - span) // 2
    window = torch.nn.functional.pad(window, (before, n_fft - span - before))
    batch = input if input.dim() == 3 else input.unsqueeze(0)
    frames = batch.transpose(1, 2)
    count = frames.shape[1]
    frames = torch.fft.irfft(frames, n=n_fft, dim=-1, norm="ortho" if normalized else None) * window
    total, start = n_fft + hop * (count - 1), n_fft // 2 if center else 0
    missing = start + length - total
    is_short = torch.fx.experimental.symbolic_shapes.statically_known_true(missing > 0)
    length = total - start if is_short else length

    def add_frames(frames: Any) -> Any:
        return torch.ops.aten.unfold_backward(frames, (frames.shape[0], total), 1, n_fft, hop)[
            :, start : start + length
        ]

    result = add_frames(frames) / add_frames(window.square().expand(1, count, n_fft))
    if is_short:
        result = torch.nn.functional.pad(result, (0, missing))
    return result if input.dim() == 3 else result.squeeze(0)
