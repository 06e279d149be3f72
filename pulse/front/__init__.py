"""Fronts and backs of audio models, as typed models: each exact to the reference that it is named after."""

from collections.abc import Callable

from pulse.front.framing import frames, overlap_add
from pulse.front.kaldi import kaldi_fbank, kaldi_mfcc
from pulse.front.spectra import from_polar, magnitude, mask, phase, power
from pulse.front.transforms import irfft, istft, rfft, stft
from pulse.typed import TypedModel

__all__ = [
    "FUNCTIONS",
    "frames",
    "from_polar",
    "irfft",
    "istft",
    "kaldi_fbank",
    "kaldi_mfcc",
    "magnitude",
    "mask",
    "overlap_add",
    "phase",
    "power",
    "rfft",
    "stft",
]

FUNCTIONS: dict[str, Callable[..., TypedModel]] = {
    function.__name__: function
    for function in (
        frames,
        overlap_add,
        stft,
        istft,
        rfft,
        irfft,
        magnitude,
        phase,
        power,
        from_polar,
        mask,
        kaldi_fbank,
        kaldi_mfcc,
    )
}
"""Every function of this package, by name."""
