"""Audio in overlapping frames, and back."""

from pulse.errors import InputError
from pulse.front.builder import FunctionBuilder
from pulse.front.parameter_checks import require_choice, require_count
from pulse.front.windows import WindowLike, window_values
from pulse.models import TypedModel
from pulse.ops.op import PadMode

MAX_OVERLAPS = 1 << 10
"""Maximum number of frames that overlap at one sample."""
PAD_MODES: dict[str, PadMode] = {
    "constant": "constant",
    "zeros": "constant",
    "reflect": "reflect",
    "edge": "edge",
    "replicate": "edge",
    "symmetric": "symmetric",
}
"""The modes of padding, by their names in numpy and PyTorch."""


def frames(
    size: int,
    hop: int,
    pad_start: int = 0,
    pad_end: int = 0,
    *,
    pad_mode: str = "constant",
    window: WindowLike = None,
    periodic: bool = True,
    beta: float = 12.0,
    shape: str = "1,T",
) -> TypedModel:
    """Cut audio into frames of ``size`` samples, one every ``hop``.

    Input    x [B, T]
    Output   frames [B, frames, size],  frames = (pad_start + T + pad_end - size) // hop + 1
    Delay    a frame is ready with its last sample

    pad_start, pad_end  samples beyond the ends: zeros, or of ``pad_mode`` ``reflect`` or ``edge``
    window   multiplied with each frame; ``beta`` of a kaiser window
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "frames"
    require_count(function, "size", size)
    require_count(function, "hop", hop)
    require_count(function, "pad_start", pad_start, 0)
    require_count(function, "pad_end", pad_end, 0)
    mode = PAD_MODES[require_choice(function, "pad_mode", pad_mode, PAD_MODES)]
    builder = FunctionBuilder(function, {"x": shape})
    builder.require_rank(builder["x"], 2, "1,T")
    x = builder.pad(builder["x"], 1, pad_start, pad_end, mode)
    y = builder.frame(x, 1, size, hop, "cut" if window is not None else "frames")
    if window is not None:
        weights = window_values(function, window, size, periodic, beta)
        y = builder.apply("mul", y, builder.add_constant("window", weights), name="windowed")
    return builder.model(frames=y)


def overlap_add(
    size: int,
    hop: int,
    window: WindowLike = None,
    periodic: bool = True,
    *,
    beta: float = 12.0,
    trim_start: int = 0,
    trim_end: int = 0,
    shape: str | None = None,
) -> TypedModel:
    """Overlap-add frames.

    Input    x [B, frames, size]
    Output   sound [B, (frames - 1)*hop + size - trim_start - trim_end]
    Delay    none: a sample is ready with the last frame that includes it

    window   multiplied with each frame before; ``beta`` of a kaiser window
    trim_start, trim_end  samples to omit
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "overlap_add"
    require_count(function, "size", size)
    require_count(function, "hop", hop)
    if size > MAX_OVERLAPS * hop:
        raise InputError(
            f"{function}: size={size} is more than {MAX_OVERLAPS} times hop={hop}; use a larger hop"
        )
    require_count(function, "trim_start", trim_start, 0)
    require_count(function, "trim_end", trim_end, 0)
    builder = FunctionBuilder(function, {"x": f"1,frames,{size}" if shape is None else shape})
    x = builder["x"]
    builder.require_rank(x, 3, f"1,frames,{size}")
    if builder.require_fixed(x, 2, "the samples of a frame") != size:
        raise builder.error(f"frames of shape {builder.text(x)!r} are not of size={size}")
    if window is not None:
        weights = window_values(function, window, size, periodic, beta)
        x = builder.apply("mul", x, builder.add_constant("window", weights), name="windowed")
    whole = builder.overlap_add(x, hop)
    length = builder.shape(whole)[1]
    builder.require(length - trim_start - trim_end, 0, "samples that trim_start and trim_end leave")
    return builder.model(sound=builder.slice(whole, 1, trim_start, length - trim_end))
