"""Fronts and backs of audio models, as typed models: each exact to the reference that it is named after."""

from collections.abc import Callable

from pulse.front.axes import squeeze, transpose, unsqueeze
from pulse.front.codes import dequantize, quantize
from pulse.front.context import deltas, splice, stack
from pulse.front.framing import frames, overlap_add
from pulse.front.kaldi import kaldi_fbank, kaldi_mfcc
from pulse.front.levels import dc_block, deemphasis, gain, limiter, preemphasis
from pulse.front.logarithms import db, log, whisper_log
from pulse.front.mel import dct, mel, mel_spectrogram, mfcc
from pulse.front.micro_frontend import micro_frontend
from pulse.front.normalising import cmvn, sliding_cmvn
from pulse.front.spectra import compress, from_polar, magnitude, mask, phase, power
from pulse.front.tensorflow import tf_mfcc, tf_spectrogram
from pulse.front.transforms import irfft, istft, rfft, stft
from pulse.models import TypedModel

__all__ = [
    "FUNCTIONS",
    "cmvn",
    "compress",
    "db",
    "dc_block",
    "dct",
    "deemphasis",
    "deltas",
    "dequantize",
    "frames",
    "from_polar",
    "gain",
    "irfft",
    "istft",
    "kaldi_fbank",
    "kaldi_mfcc",
    "limiter",
    "log",
    "magnitude",
    "mask",
    "mel",
    "mel_spectrogram",
    "mfcc",
    "micro_frontend",
    "overlap_add",
    "phase",
    "power",
    "preemphasis",
    "quantize",
    "rfft",
    "sliding_cmvn",
    "splice",
    "squeeze",
    "stack",
    "stft",
    "tf_mfcc",
    "tf_spectrogram",
    "transpose",
    "unsqueeze",
    "whisper_log",
]

FUNCTIONS: dict[str, Callable[..., TypedModel]] = {
    name: globals()[name] for name in __all__ if name != "FUNCTIONS"
}
"""Every function of this package, by name."""
