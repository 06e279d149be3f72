"""Mel filter banks and the features computed from them."""

from dataclasses import replace

import numpy as np

from pulse.facts import Array
from pulse.front.builder import FunctionBuilder
from pulse.front.layouts import REAL, arrange_real, gather_real
from pulse.front.logarithms import decibels, floored_log
from pulse.front.parameter_checks import options_from, require_choice, require_count, require_number
from pulse.front.spectra import power_of, raise_power
from pulse.front.transforms import MAX_SAMPLES, Normalized, SpectrumOptions, spectrum_builder
from pulse.front.triangles import MAX_BANDS, SCALES, cosines, mel_triangles, require_band
from pulse.front.windows import WindowLike
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.support.record import record

NORMS = ("none", "slaney")
LOGS = ("none", "natural", "log10", "db")


@record
class BankOptions:
    """The parameters of a bank of mel bands, as ``mel`` describes them."""

    sample_rate: int
    n_mels: int
    f_min: float
    f_max: float | None
    mel_scale: str
    norm: str | None


@record
class MelOptions(BankOptions, SpectrumOptions):
    """The parameters that ``mel_spectrogram`` and ``mfcc`` have in common, as ``mel_spectrogram`` describes them."""

    power: float


def mel(
    n_mels: int = 80,
    sample_rate: int = 16000,
    *,
    f_min: float = 0.0,
    f_max: float | None = None,
    mel_scale: str = "htk",
    norm: str | None = None,
    layout: str = "F,T",
    output_layout: str = "T,F",
    shape: str = "1,257,frames",
) -> TypedModel:
    """Sum a spectrogram in mel bands, as ``torchaudio.functional.melscale_fbanks`` and ``librosa.filters.mel`` do.

    Input    x [B, F, frames], magnitudes or powers; [B, frames, F] with ``layout="T,F"``
    Output   features [B, frames, n_mels]; [B, n_mels, frames] with ``output_layout="F,T"``
    Delay    none

    f_min, f_max  limits of the band in Hz; f_max is half of the sample rate by default
    mel_scale     ``htk`` (PyTorch's default) or ``slaney`` (librosa's)
    norm          ``slaney``: each band has area 1 (librosa's default); ``none`` (PyTorch's)
    Raises        InputError: an option is out of range, or the shape does not fit
    """
    options = options_from(BankOptions, locals())
    builder, x = _real_input("mel", layout, output_layout, shape)
    bank = _bank("mel", builder.require_fixed(x, 2, "the frequencies"), options)
    return builder.model(features=arrange_real(builder, builder.matmul(x, bank, "bank"), output_layout))


def mel_spectrogram(
    sample_rate: int = 16000,
    n_fft: int = 400,
    *,
    win_length: int | None = None,
    hop: int | None = None,
    f_min: float = 0.0,
    f_max: float | None = None,
    n_mels: int = 128,
    window: WindowLike = "hann",
    periodic: bool = True,
    beta: float = 12.0,
    power: float = 2.0,
    normalized: Normalized = False,
    center: bool = True,
    pad_mode: str = "reflect",
    norm: str | None = None,
    mel_scale: str = "htk",
    log: str = "none",
    floor: float = 1e-10,
    offset: float = 0.0,
    output_layout: str = "T,F",
    shape: str = "1,T",
) -> TypedModel:
    """Convert sound to mel bands, as ``torchaudio.transforms.MelSpectrogram`` and ``librosa.feature.melspectrogram``.

    Input    x [B, T]
    Output   features [B, frames, n_mels]; [B, n_mels, frames] with ``output_layout="F,T"``
    Delay    see ``stft``

    hop      win_length // 2 by default, as torchaudio has it
    power    1: of magnitudes, 2: of powers
    normalized  see ``stft``; torchaudio's True is ``"window"``
    log      ``none``, ``natural``, ``log10`` or ``db``, of the larger of ``floor`` and the value plus ``offset``
    The others are those of ``stft`` and ``mel``.
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    builder, y = _bands("mel_spectrogram", options_from(MelOptions, locals()))
    y = _logarithm(builder, y, log, floor, offset)
    require_choice(builder.function, "output_layout", output_layout, REAL)
    return builder.model(features=arrange_real(builder, y, output_layout))


def mfcc(
    n_mfcc: int = 40,
    sample_rate: int = 16000,
    *,
    n_fft: int = 400,
    win_length: int | None = None,
    hop: int | None = None,
    f_min: float = 0.0,
    f_max: float | None = None,
    n_mels: int = 128,
    window: WindowLike = "hann",
    periodic: bool = True,
    beta: float = 12.0,
    power: float = 2.0,
    normalized: Normalized = False,
    center: bool = True,
    pad_mode: str = "reflect",
    norm: str | None = None,
    mel_scale: str = "htk",
    log: str = "db",
    floor: float = 1e-10,
    offset: float = 0.0,
    dct_norm: str = "ortho",
    lifter: float = 0.0,
    output_layout: str = "T,F",
    shape: str = "1,T",
) -> TypedModel:
    """Compute mel frequency cepstral coefficients, as ``torchaudio.transforms.MFCC`` and ``librosa.feature.mfcc``.

    Both cut the decibels off at 80 below the loudest value of the whole recording, which a stream does not know; here
    nothing is cut off but at ``floor``.

    Input    x [B, T]
    Output   features [B, frames, n_mfcc]; [B, n_mfcc, frames] with ``output_layout="F,T"``
    Delay    see ``stft``

    log      ``db``, ``natural`` (torchaudio's ``log_mels`` with ``floor=0, offset=1e-6``), ``log10`` or ``none``
    dct_norm, lifter  see ``dct``
    The others are those of ``mel_spectrogram``.
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    builder, y = _bands("mfcc", options_from(MelOptions, locals()))
    y = _logarithm(builder, y, log, floor, offset)
    require_choice(builder.function, "output_layout", output_layout, REAL)
    y = builder.matmul(y, _cosines(builder.function, n_mels, n_mfcc, dct_norm, lifter), "cepstrum")
    return builder.model(features=arrange_real(builder, y, output_layout))


def dct(
    n_mfcc: int = 13,
    norm: str = "ortho",
    *,
    lifter: float = 0.0,
    layout: str = "T,F",
    output_layout: str = "T,F",
    shape: str = "1,frames,80",
) -> TypedModel:
    """Compute the first coefficients of a cosine transform (type 2) of each frame.

    Input    x [B, frames, bins]; [B, bins, frames] with ``layout="F,T"``
    Output   features [B, frames, n_mfcc]; [B, n_mfcc, frames] with ``output_layout="F,T"``
    Delay    none

    norm     ``ortho``, or ``none``: twice the sum
    lifter   L: coefficient n is multiplied by 1 + L/2 sin(pi (n + 1) / L), as librosa does; 0: none
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    builder, x = _real_input("dct", layout, output_layout, shape)
    matrix = _cosines("dct", builder.require_fixed(x, 2, "the bins"), n_mfcc, norm, lifter)
    return builder.model(features=arrange_real(builder, builder.matmul(x, matrix, "cepstrum"), output_layout))


def _real_input(
    function: str, layout: str, output_layout: str, shape: str
) -> tuple[FunctionBuilder, OutletId]:
    """Return the builder, and its input as [B, frames, F]."""
    require_choice(function, "layout", layout, REAL)
    require_choice(function, "output_layout", output_layout, REAL)
    builder = FunctionBuilder(function, {"x": shape})
    return builder, gather_real(builder, builder["x"], layout)


def _bands(function: str, options: MelOptions) -> tuple[FunctionBuilder, OutletId]:
    """Return the builder, and the bands [B, frames, n_mels]."""
    require_number(function, "power", options.power, 0, above=True)
    n_fft = require_count(function, "n_fft", options.n_fft, 2, MAX_SAMPLES)
    size = require_count(function, "win_length", n_fft if options.win_length is None else options.win_length)
    hop = max(1, size // 2) if options.hop is None else options.hop
    builder, y = spectrum_builder(function, replace(options, hop=hop))
    bank = _bank(function, n_fft // 2 + 1, options)
    powers = raise_power(builder, power_of(builder, y), options.power / 2)
    return builder, builder.matmul(powers, bank, "bank")


def _bank(function: str, bins: int, options: BankOptions) -> Array:
    bands, rate_hz = options.n_mels, options.sample_rate
    require_count(function, "n_mels", bands, 1, MAX_BANDS)
    require_number(function, "sample_rate", rate_hz, 0, above=True)
    low = require_number(function, "f_min", options.f_min, 0)
    high = require_number(function, "f_max", rate_hz / 2 if options.f_max is None else options.f_max, 0)
    require_band(function, low, high, rate_hz)
    scale = require_choice(function, "mel_scale", options.mel_scale, SCALES)
    norm = require_choice(function, "norm", "none" if options.norm is None else options.norm, NORMS)
    return mel_triangles(bins, bands, rate_hz, low, high, scale, norm == "slaney")


def _logarithm(
    builder: FunctionBuilder, x: OutletId, logarithm: str, floor: float, offset: float
) -> OutletId:
    require_choice(builder.function, "log", logarithm, LOGS)
    require_number(builder.function, "floor", floor, 0)
    require_number(builder.function, "offset", offset, 0)
    if logarithm == "none":
        return x
    x = builder.apply("add", x, offset) if offset else x
    return decibels(builder, x, floor) if logarithm == "db" else floored_log(builder, x, floor, logarithm)


def _cosines(function: str, bands: int, n_mfcc: int, norm: str, lifter: float) -> Array:
    require_count(function, "n_mfcc", n_mfcc, 1, bands)
    require_choice(function, "dct_norm" if function == "mfcc" else "norm", norm, ("ortho", "none"))
    require_number(function, "lifter", lifter, 0)
    weight = 1 + lifter / 2 * np.sin(np.pi * np.arange(1, n_mfcc + 1) / lifter) if lifter else 1.0
    return cosines(bands, n_mfcc, norm == "ortho") * weight
