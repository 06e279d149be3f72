"""Fourier transforms of frames and of sound, and back."""

import math
from typing import Literal, TypeAlias

import numpy as np

from pulse.dim import TDim
from pulse.errors import DimError, InputError
from pulse.facts import Array
from pulse.front.builder import FunctionBuilder
from pulse.front.framing import PAD_MODES
from pulse.front.layouts import arrange, arrange_real, check_layout, example, gather, gather_real
from pulse.front.parameter_checks import options_from, require_choice, require_count, require_flag
from pulse.front.spectra import from_angle, magnitude_of, split_complex
from pulse.front.windows import WindowLike, centre, window_values
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.shape import Expand
from pulse.ops.spectral import dft_matrix, half_to_real
from pulse.support.record import record
from pulse.support.wording import count_of

Normalized: TypeAlias = bool | Literal["frame_length", "window"]

MAX_SAMPLES = 1 << 13
"""Maximum number of samples of a transform."""
NORMS = ("backward", "ortho", "forward")
MIN_OVERLAP = 1e-11
"""Below this the windows of an inverse transform do not cover a sample, as in PyTorch."""


def forward_matrix(n: int, size: int, onesided: bool, scale: float = 1.0) -> Array:
    """Return ``[size, 2F]``: the contribution of each of the first samples of a frame to the bins, real parts first."""
    bins = n // 2 + 1 if onesided else n
    basis = dft_matrix(size, 1, n, bins, inverse=False)[:, 0]
    return np.concatenate([basis[..., 0], basis[..., 1]], 1) * scale


def inverse_matrix(n: int, onesided: bool, scale: float) -> Array:
    """Return ``[2F, n]``: the contribution of the parts of each bin to the samples of a frame, which are real."""
    basis = half_to_real(n, n // 2 + 1) if onesided else dft_matrix(n, 2, n, n, inverse=True)[..., :1]
    return np.concatenate([basis[:, 0, :, 0], basis[:, 1, :, 0]], 0) * scale


def rfft(
    n: int = 512,
    norm: str = "backward",
    *,
    window: WindowLike = None,
    periodic: bool = True,
    beta: float = 12.0,
    onesided: bool = True,
    layout: str = "F,T,2",
    parts: str = "complex",
    shape: str | None = None,
) -> TypedModel:
    """Compute the spectrum of each frame, as ``numpy.fft.rfft`` (``fft`` with ``onesided=False``).

    Input    x [B, frames, size]; cut or filled with zeros to ``n`` samples
    Output   spectrum [B, F, frames, 2] by default, F = n // 2 + 1; parts ``apart``: real and imaginary,
             ``polar``: magnitude and phase, each [B, F, frames]
    Delay    none

    norm     ``backward``, ``ortho`` or ``forward``, as in numpy
    window   ``n`` factors of the samples before the transform
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "rfft"
    _check_size(function, "n", n)
    layout, parts = check_layout(function, layout, parts)
    builder = FunctionBuilder(function, {"x": f"1,frames,{n}" if shape is None else shape})
    x = builder["x"]
    builder.require_rank(x, 3, f"1,frames,{n}")
    size = min(n, builder.require_fixed(x, 2, "the samples of a frame"))
    matrix = forward_matrix(n, size, require_flag(function, "onesided", onesided), _norm(function, norm, n))
    if window is not None:
        matrix = matrix * window_values(function, window, n, periodic, beta)[:size, None]
    y = builder.matmul(builder.slice(x, 2, 0, size), matrix, "transform")
    return _spectrum(builder, y, layout, parts)


def irfft(
    n: int = 512,
    norm: str = "backward",
    *,
    window: WindowLike = None,
    periodic: bool = True,
    beta: float = 12.0,
    onesided: bool = True,
    layout: str = "F,T,2",
    parts: str = "complex",
    shape: str | None = None,
) -> TypedModel:
    """Compute the frame of each spectrum, as ``numpy.fft.irfft`` (the real part of ``ifft`` with ``onesided=False``).

    Input    x [B, F, frames, 2] by default, F = n // 2 + 1; of parts ``apart`` or ``polar`` two, each [B, F, frames]:
             x and imaginary, x and phase
    Output   frames [B, frames, n]
    Delay    none

    norm     ``backward``, ``ortho`` or ``forward``, as in numpy
    window   ``n`` factors of the samples after the transform
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "irfft"
    _check_size(function, "n", n)
    layout, parts = check_layout(function, layout, parts)
    bins = n // 2 + 1 if require_flag(function, "onesided", onesided) else n
    builder, y = _spectrum_input(function, layout, parts, bins, shape)
    matrix = inverse_matrix(n, onesided, 1 / _norm(function, norm, n))
    if window is not None:
        matrix = matrix * window_values(function, window, n, periodic, beta)
    return builder.model(frames=builder.matmul(y, matrix, "transform"))


def stft(
    n_fft: int = 512,
    hop: int | None = None,
    *,
    win_length: int | None = None,
    window: WindowLike = "hann",
    periodic: bool = True,
    beta: float = 12.0,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: Normalized = False,
    onesided: bool = True,
    layout: str = "F,T,2",
    parts: str = "complex",
    shape: str = "1,T",
) -> TypedModel:
    """Compute the short-time Fourier transform of ``torch.stft``.

    Input    x [B, T]
    Output   spectrum [B, F, frames, 2] by default, F = n_fft // 2 + 1, frames = T // hop + 1 with ``center``, else
             (T - n_fft) // hop + 1; parts ``apart``: real and imaginary, ``polar``: magnitude and phase, each
             [B, F, frames]
    Delay    a frame is ready with the last of its samples whose weight is not 0; with ``center`` and mirrored ends the
             first one waits for the samples that are mirrored

    hop         samples from frame to frame; n_fft // 4 by default
    win_length  samples of the window, in the middle of the frame; n_fft by default
    window      a name, numbers, or None: all ones, which is PyTorch's default
    periodic, beta  parameters of the window
    center      frame j is around sample j*hop, with n_fft // 2 samples of ``pad_mode`` beyond the ends
    normalized  divided by sqrt(n_fft) (True, ``frame_length``), or by the root of the window's power (``window``)
    Raises      InputError: an option is out of range, or the shape does not fit
    """
    layout, parts = check_layout("stft", layout, parts)
    builder, y = spectrum_builder("stft", options_from(SpectrumOptions, locals()), onesided)
    return _spectrum(builder, y, layout, parts)


@record
class SpectrumOptions:
    """The parameters of a spectrum of sound, as ``stft`` describes them."""

    n_fft: int
    hop: int | None
    win_length: int | None
    window: WindowLike
    periodic: bool
    beta: float
    center: bool
    pad_mode: str
    normalized: Normalized
    shape: str


def spectrum_builder(
    function: str, options: SpectrumOptions, onesided: bool = True
) -> tuple[FunctionBuilder, OutletId]:
    """Return a builder with the input x [B, T], and its spectrum [B, frames, 2F], real parts first, as in ``stft``.

    Zeros at the ends of the window are not read, so that nothing waits for them.
    """
    n_fft, mode = options.n_fft, PAD_MODES[require_choice(function, "pad_mode", options.pad_mode, PAD_MODES)]
    taper = options.win_length, options.window, options.periodic, options.beta
    values, hop = _window(function, n_fft, options.hop, *taper)
    padding = n_fft // 2 if require_flag(function, "center", options.center) else 0
    scale = 1 / _normalizer(function, options.normalized, values)
    builder = FunctionBuilder(function, {"x": options.shape})
    builder.require_rank(builder["x"], 2, "1,T")
    nonzero = np.flatnonzero(values)
    first = min(int(nonzero[0]), padding or n_fft)
    after = min(n_fft - 1 - int(nonzero[-1]), padding or n_fft)
    size = n_fft - first - after
    x = builder.pad(builder["x"], 1, padding - first, padding - after, mode)
    matrix = (
        forward_matrix(n_fft, n_fft, require_flag(function, "onesided", onesided), scale) * values[:, None]
    )
    return builder, builder.matmul(builder.frame(x, 1, size, hop), matrix[first : first + size], "transform")


def istft(
    n_fft: int = 512,
    hop: int | None = None,
    *,
    win_length: int | None = None,
    window: WindowLike = "hann",
    periodic: bool = True,
    beta: float = 12.0,
    center: bool = True,
    normalized: Normalized = False,
    onesided: bool = True,
    length: int | str | None = None,
    layout: str = "F,T,2",
    parts: str = "complex",
    shape: str | None = None,
) -> TypedModel:
    """Invert ``stft``, as ``torch.istft``: frames are added and divided by what their windows add up to.

    Input    x [B, F, frames, 2] by default; of parts ``apart`` or ``polar`` two, each [B, F, frames]: x and imaginary,
             x and phase
    Output   sound [B, (frames - 1)*hop] with ``center``, else [B, (frames - 1)*hop + n_fft]; or of ``length``
    Delay    n_fft // 2 samples with ``center``; a sample is ready with the last frame that reaches it

    length   samples to give: a number, or an expression of the symbols of ``shape``, such as T if that is
             ``1,257,T//256+1,2``; at most what the frames reach
    The others are those of ``stft``.
    Raises   InputError: also if the windows do not cover a sample
    """
    function = "istft"
    values, hop = _window(function, n_fft, hop, win_length, window, periodic, beta)
    layout, parts = check_layout(function, layout, parts)
    require_flag(function, "center", center)
    bins = n_fft // 2 + 1 if require_flag(function, "onesided", onesided) else n_fft
    scale = _normalizer(function, normalized, values)
    skipped = n_fft // 2 if center else 0
    _require_covered(function, values, hop, skipped)
    builder, y = _spectrum_input(function, layout, parts, bins, shape)
    frames = builder.shape(y)[1]
    y = builder.matmul(y, inverse_matrix(n_fft, onesided, scale) * values, "transform")
    sound, weight = builder.overlap_add(y, hop), _weights(builder, frames, values, hop)
    end = _end(builder, builder.shape(sound)[1], skipped, center, length)
    sound, weight = (builder.slice(wire, 1, skipped, end) for wire in (sound, weight))
    return builder.model(sound=builder.apply("div", sound, weight, name="sound"))


def _check_size(function: str, name: str, n: object) -> None:
    require_count(function, name, n, 2, MAX_SAMPLES)


def _norm(function: str, norm: str, n: int) -> float:
    return {"backward": 1.0, "ortho": 1 / math.sqrt(n), "forward": 1 / n}[
        require_choice(function, "norm", norm, NORMS)
    ]


def _window(
    function: str,
    n_fft: int,
    hop: int | None,
    win_length: int | None,
    window: WindowLike,
    periodic: bool,
    beta: float,
) -> tuple[Array, int]:
    """Return the window of a whole frame, and the hop."""
    _check_size(function, "n_fft", n_fft)
    hop = require_count(function, "hop", max(1, n_fft // 4) if hop is None else hop)
    size = require_count(function, "win_length", n_fft if win_length is None else win_length, 1, n_fft)
    values = centre(window_values(function, window, size, periodic, beta), n_fft)
    if not values.any():
        raise InputError(f"{function}: the window of {count_of(size, 'sample')} is all zeros")
    return values, hop


def _normalizer(function: str, normalized: object, values: Array) -> float:
    if isinstance(normalized, bool):
        return math.sqrt(len(values)) if normalized else 1.0
    norm = require_choice(function, "normalized", normalized, ("frame_length", "window"))
    return math.sqrt(len(values)) if norm == "frame_length" else math.sqrt(float((values**2).sum()))


def _spectrum(builder: FunctionBuilder, y: OutletId, layout: str, parts: str) -> TypedModel:
    """Return a spectrum [B, T, 2F] as the outputs of the function: one tensor, or one of each part."""
    if parts == "complex":
        return builder.model(spectrum=arrange(builder, y, layout))
    real, imaginary, _, _ = split_complex(builder, y, 2)
    outputs = {"real": real, "imaginary": imaginary}
    if parts == "polar":
        outputs = {
            "magnitude": magnitude_of(builder, real, imaginary),
            "phase": builder.apply("atan2", imaginary, real, name="phase"),
        }
    return builder.model(**{name: arrange_real(builder, wire, layout) for name, wire in outputs.items()})


def _spectrum_input(
    function: str, layout: str, parts: str, bins: int, shape: str | None
) -> tuple[FunctionBuilder, OutletId]:
    """Return a builder with the inputs of a spectrum, and the spectrum as [B, T, 2F]: the reverse of ``_spectrum``."""
    text = example(layout, bins) if shape is None else shape
    if parts == "complex":
        builder = FunctionBuilder(function, {"x": text})
        both = gather(builder, builder["x"], layout)
    else:
        other = "imaginary" if parts == "apart" else "phase"
        builder = FunctionBuilder(function, {"x": text, other: text})
        pair = tuple(gather_real(builder, builder[name], layout) for name in ("x", other))
        both = builder.concat(*(pair if parts == "apart" else from_angle(builder, *pair)))
    frequencies = builder.require_fixed(both, 2, "the frequencies")
    if frequencies != 2 * bins:
        raise builder.error(
            f"shape {text!r} has {count_of(frequencies // 2, 'frequency', 'frequencies')}, a transform of this size "
            f"has {bins}, "
            f"as in {example(layout, bins)!r}"
        )
    return builder, both


def _weights(builder: FunctionBuilder, frames: TDim, values: Array, hop: int) -> OutletId:
    """Return the sum of the squared windows at each sample, [1, (frames - 1)*hop + n]."""
    size = len(values)
    parts = -(-size // hop)
    table = np.zeros((parts, hop))
    table.ravel()[:size] = values**2
    ones = builder.add(
        "ones", Expand((TDim.of(1), frames, TDim.of(1))), builder.add_constant("one", np.ones((1, 1, 1)))
    )
    ones = builder.pad(ones, 1, parts - 1, parts - 1)
    near = builder.join_axes(builder.frame(ones, 1, parts, 1))
    rows = builder.matmul(near, table[::-1], "overlap")
    whole = builder.reshape(rows, 1, builder.shape(rows)[1] * hop)
    return builder.slice(whole, 1, 0, (frames - 1) * hop + size)


def _require_covered(function: str, values: Array, hop: int, skipped: int) -> None:
    """Raise InputError if the windows of two or more frames do not cover an output sample."""
    size = len(values)
    frames = -(-size // hop) + 2
    total = np.zeros((frames - 1) * hop + size)
    for j in range(frames):
        total[j * hop : j * hop + size] += values**2
    overlap = total[skipped : len(total) - skipped]
    if overlap.size and overlap.min() < MIN_OVERLAP:
        sample = int(overlap.argmin())
        raise InputError(
            f"{function}: the windows leave sample {sample} uncovered, so it cannot be divided by their sum; use a "
            "smaller hop, center=True, or a window without zeros at its ends"
        )


def _end(builder: FunctionBuilder, whole: TDim, skipped: int, center: bool, length: int | str | None) -> TDim:
    """Return the end of the returned samples among all that the frames cover."""
    if length is None:
        return whole - skipped
    if isinstance(length, int):
        samples = TDim.of(require_count(builder.function, "length", length))
    else:
        try:
            samples = builder.scope.parse(length)
        except DimError as error:
            raise builder.error(
                f"length={length!r} must be a number or an expression such as 'T': {error}"
            ) from error
    builder.require(whole - skipped - samples, 0, f"length={length} and the samples that the frames reach")
    return skipped + samples
