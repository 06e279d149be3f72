"""Kaldi's filter bank and its cepstrum."""

import math

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.front.builder import FunctionBuilder
from pulse.front.parameter_checks import (
    options_from,
    require_choice,
    require_count,
    require_flag,
    require_number,
)
from pulse.front.spectra import power_of, raise_power
from pulse.front.transforms import MAX_SAMPLES, forward_matrix
from pulse.front.triangles import MAX_BANDS, cosines, kaldi_triangles, require_band
from pulse.front.windows import window_values
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.reduce import Reduce
from pulse.support.powers import next_power_of_two
from pulse.support.record import record

WINDOWS = ("povey", "hamming", "hann", "hanning", "blackman", "rectangular", "sine")
EPSILON = float(np.finfo(np.float32).eps)
"""Kaldi's floor of values before a logarithm."""


@record
class FrameOptions:
    """The parameters that ``kaldi_fbank`` and ``kaldi_mfcc`` have in common, as ``kaldi_fbank`` describes them."""

    sample_rate: int
    frame_length: float
    frame_shift: float
    low_freq: float
    high_freq: float
    window: str
    preemphasis: float
    remove_dc_offset: bool
    snip_edges: bool
    round_to_power_of_two: bool
    dither: float
    energy_floor: float
    use_energy: bool
    raw_energy: bool
    blackman_coeff: float
    scale: float
    shape: str


def kaldi_fbank(
    num_mel_bins: int = 80,
    sample_rate: int = 16000,
    *,
    frame_length: float = 25.0,
    frame_shift: float = 10.0,
    low_freq: float = 20.0,
    high_freq: float = 0.0,
    window: str = "povey",
    preemphasis: float = 0.97,
    remove_dc_offset: bool = True,
    snip_edges: bool = True,
    round_to_power_of_two: bool = True,
    dither: float = 0.0,
    energy_floor: float = 0.0,
    use_energy: bool = False,
    raw_energy: bool = True,
    htk_compat: bool = False,
    use_log_fbank: bool = True,
    use_power: bool = True,
    blackman_coeff: float = 0.42,
    scale: float = 32768.0,
    shape: str = "1,T",
) -> TypedModel:
    """Compute Kaldi's filter bank (``compute-fbank-feats``, kaldi-native-fbank, ``torchaudio.compliance.kaldi.fbank``).

    Input    x [B, T]
    Output   features [B, frames, bins],  frames = (T - length) // shift + 1, or (T + shift // 2) // shift without
             ``snip_edges``; bins = num_mel_bins, one more with ``use_energy``
    Delay    a frame is ready with its last sample; without ``snip_edges`` the last frames wait for the end

    num_mel_bins  bands of the mel scale
    sample_rate   sample rate in Hz
    frame_length, frame_shift  length and hop of a frame in ms
    low_freq, high_freq  limits of the band in Hz; a high_freq of 0 or less counts from half of the sample rate
    window        a name in ``WINDOWS``; ``blackman_coeff`` is the middle coefficient of ``blackman``
    preemphasis   each sample minus this times the previous one, inside the frame; 0: none
    remove_dc_offset  subtract the mean of each frame
    snip_edges    only whole frames; otherwise the signal is mirrored at its ends
    round_to_power_of_two  the length of the transform; else it is the frame's
    dither        0: random numbers cannot be repeated
    use_energy    the energy of the frame first (last with ``htk_compat``), of at least ``energy_floor``; before
                  preemphasis and window with ``raw_energy``
    use_log_fbank  the logarithm of the bands
    use_power     bands of the squares of magnitudes; else of the magnitudes
    scale         the samples are multiplied with it: Kaldi takes -32768 … 32767; 1 if they are so already
    shape         the shape of x
    Raises        InputError: an option is out of range, or the shape does not fit
    """
    frames = _Frames("kaldi_fbank", options_from(FrameOptions, locals()))
    builder, function = frames.builder, frames.builder.function
    require_flag(function, "htk_compat", htk_compat)
    require_flag(function, "use_log_fbank", use_log_fbank)
    require_flag(function, "use_power", use_power)
    y = builder.matmul(
        raise_power(builder, frames.power(), 1.0 if use_power else 0.5),
        _bank(frames, num_mel_bins),
        "bank",
    )
    if use_log_fbank:
        y = _log(builder, y)
    if use_energy:
        energy = frames.energy()
        y = builder.concat(*((y, energy) if htk_compat else (energy, y)))
    return builder.model(features=y)


def kaldi_mfcc(
    num_ceps: int = 13,
    num_mel_bins: int = 23,
    *,
    sample_rate: int = 16000,
    frame_length: float = 25.0,
    frame_shift: float = 10.0,
    low_freq: float = 20.0,
    high_freq: float = 0.0,
    window: str = "povey",
    preemphasis: float = 0.97,
    remove_dc_offset: bool = True,
    snip_edges: bool = True,
    round_to_power_of_two: bool = True,
    dither: float = 0.0,
    energy_floor: float = 0.0,
    use_energy: bool = True,
    raw_energy: bool = True,
    htk_compat: bool = False,
    cepstral_lifter: float = 22.0,
    blackman_coeff: float = 0.42,
    scale: float = 32768.0,
    shape: str = "1,T",
) -> TypedModel:
    """Compute Kaldi's cepstrum (``compute-mfcc-feats``).

    Input    x [B, T]
    Output   features [B, frames, num_ceps]
    Delay    see ``kaldi_fbank``

    num_ceps  coefficients, at most num_mel_bins; the first one is the energy with ``use_energy``, and comes last with
             ``htk_compat``, which scales it by sqrt(2) if it is not an energy
    cepstral_lifter  weight of the higher ones; 0: none
    The others are those of ``kaldi_fbank``.
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    frames = _Frames("kaldi_mfcc", options_from(FrameOptions, locals()))
    builder, function = frames.builder, frames.builder.function
    require_flag(function, "htk_compat", htk_compat)
    bank = _bank(frames, num_mel_bins)
    require_count(function, "num_ceps", num_ceps, 1, num_mel_bins)
    lifter = require_number(function, "cepstral_lifter", cepstral_lifter, 0)
    order = np.arange(num_ceps)
    weight = 1 + 0.5 * lifter * np.sin(math.pi * order / lifter) if lifter else np.ones(num_ceps)
    matrix = cosines(num_mel_bins, num_ceps, True) * weight
    if htk_compat and not use_energy:
        matrix[:, 0] *= math.sqrt(2)
    logs = _log(builder, builder.matmul(frames.power(), bank, "bank"))
    if not use_energy:
        if htk_compat:
            matrix = np.roll(matrix, -1, 1)
        return builder.model(features=builder.matmul(logs, matrix, "cepstrum"))
    energy = frames.energy()
    if num_ceps == 1:
        return builder.model(features=energy)
    y = builder.matmul(logs, matrix[:, 1:], "cepstrum")
    return builder.model(features=builder.concat(*((y, energy) if htk_compat else (energy, y))))


class _Frames:
    """The frames with which both begin.

    Without an offset, y = (x - m) - c * (x before - m) is a difference of the samples minus (1 - c) * m, for every
    sample of a frame but the first, which is its own predecessor.
    """

    def __init__(self, function: str, options: FrameOptions) -> None:
        self.options = options
        self.rate_hz = require_count(function, "sample_rate", options.sample_rate)
        self.size = _samples(function, "frame_length", options.frame_length, self.rate_hz, 2)
        self.hop = _samples(function, "frame_shift", options.frame_shift, self.rate_hz, 1)
        to_power = require_flag(function, "round_to_power_of_two", options.round_to_power_of_two)
        self.points = next_power_of_two(self.size) if to_power else self.size
        if self.points % 2:
            raise InputError(
                f"{function}: frames of {self.size} samples are not an even number; use round_to_power_of_two=True"
            )
        if not isinstance(options.dither, int | float) or options.dither != 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"{function}: dither={options.dither!r} must be 0: random numbers cannot be repeated exactly"
            )
        self.preemphasis = require_number(function, "preemphasis", options.preemphasis, 0, 1)
        self.floor = require_number(function, "energy_floor", options.energy_floor, 0)
        self.raw = require_flag(function, "raw_energy", options.raw_energy)
        require_flag(function, "use_energy", options.use_energy)
        blackman = require_number(function, "blackman_coeff", options.blackman_coeff)
        self.weights = _window(function, options.window, self.size, blackman)
        require_flag(function, "remove_dc_offset", options.remove_dc_offset)
        require_flag(function, "snip_edges", options.snip_edges)
        require_number(function, "scale", options.scale)
        builder = self.builder = FunctionBuilder(function, {"x": options.shape})
        builder.require_rank(builder["x"], 2, "1,T")
        x = builder["x"]
        if options.scale != 1:
            x = builder.apply("mul", x, options.scale, name="scaled")
        if not options.snip_edges:
            before = self.size // 2 - self.hop // 2
            after = self.size - self.size // 2 + 2 * (self.hop // 2) - self.hop
            x = builder.pad(x, 1, before, after, "symmetric")
        raw = builder.frame(x, 1, self.size, self.hop)
        mean = builder.add("mean", Reduce("mean", (2,), True), raw) if options.remove_dc_offset else None
        self.centred = raw if mean is None else builder.apply("sub", raw, mean, name="centred")
        self.emphasised = self._emphasise(raw, mean)

    def _emphasise(self, raw: OutletId, mean: OutletId | None) -> OutletId:
        """Return the frames after preemphasis, without the leading samples whose weights are 0."""
        builder, c = self.builder, self.preemphasis
        if not c:
            return self.centred
        later, before = builder.slice(raw, 2, 1, self.size), builder.slice(raw, 2, 0, self.size - 1)
        differences = builder.apply("sub", later, builder.apply("mul", before, c))
        if mean is not None:
            differences = builder.apply("sub", differences, builder.apply("mul", mean, 1 - c))
        if self.weights[0] == 0:
            return differences
        first = builder.apply("mul", builder.slice(self.centred, 2, 0, 1), 1 - c)
        return builder.concat(first, differences)

    def power(self) -> OutletId:
        """Return the power spectrum [B, frames, points // 2 + 1]."""
        builder = self.builder
        matrix = forward_matrix(self.points, self.size, True) * self.weights[:, None]
        first_row = self.size - int(builder.shape(self.emphasised)[2])
        return power_of(builder, builder.matmul(self.emphasised, matrix[first_row:], "transform"))

    def energy(self) -> OutletId:
        """Return the logarithm of the energy of each frame [B, frames, 1]."""
        builder = self.builder
        frame = self.centred
        if not self.raw:
            first_row = self.size - int(builder.shape(self.emphasised)[2])
            frame = builder.apply(
                "mul",
                self.emphasised,
                builder.add_constant("window", self.weights[first_row:]),
                name="windowed",
            )
        total = builder.add("energy", Reduce("sum_square", (2,), True), frame)
        y = _log(builder, total)
        return builder.apply("max", y, math.log(self.floor)) if self.floor > 0 else y


def _samples(function: str, name: str, milliseconds: float, rate_hz: int, minimum: int) -> int:
    require_number(function, name, milliseconds, 0, 1e6, above=True)
    samples = int(rate_hz * 0.001 * milliseconds)
    if not minimum <= samples <= MAX_SAMPLES:
        raise InputError(
            f"{function}: {name}={milliseconds:g} ms are {samples} samples at {rate_hz} Hz, at least {minimum} and at "
            f"most {MAX_SAMPLES}"
        )
    return samples


def _window(function: str, name: str, size: int, blackman: float) -> Array:
    """Return Kaldi's windows, all symmetric."""
    require_choice(function, "window", name, WINDOWS)
    position = np.arange(size) / (size - 1)
    if name == "sine":
        return np.sin(math.pi * position) * (np.abs(np.sin(math.pi * position)) > 1e-15)
    if name == "blackman":
        values = (
            blackman - 0.5 * np.cos(2 * np.pi * position) + (0.5 - blackman) * np.cos(4 * np.pi * position)
        )
        return np.where(np.abs(values) < 1e-15, 0, values)
    window = {"hanning": "hann", "rectangular": "ones"}.get(name, name)
    return window_values(function, window, size, periodic=False)


def _bank(frames: _Frames, bands: int) -> Array:
    function, options = frames.builder.function, frames.options
    require_count(function, "num_mel_bins", bands, 3, MAX_BANDS)
    low_hz = require_number(function, "low_freq", options.low_freq, 0)
    half = frames.rate_hz / 2
    high_hz = require_number(function, "high_freq", options.high_freq)
    high_hz = high_hz if high_hz > 0 else half + high_hz
    require_band(function, low_hz, high_hz, frames.rate_hz)
    bins = frames.points // 2 + 1
    return kaldi_triangles(bins, bands, frames.rate_hz, low_hz, high_hz)


def _log(builder: FunctionBuilder, x: OutletId) -> OutletId:
    return builder.apply("log", builder.apply("max", x, EPSILON), name="log")
