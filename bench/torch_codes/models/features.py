"""Features, filter banks and quantisers."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from bench.torch_codes.published_model import Subject, code


def _torch() -> Any:
    return import_module("torch")


@code("nnAudio MelSpectrogram", "nnAudio")
def nnaudio_mel() -> Subject:
    kinds = import_module("nnAudio.features")
    model = kinds.MelSpectrogram(sr=16000, n_fft=512, n_mels=40, hop_length=160, verbose=False)
    return Subject(model, _torch().randn(1, 3200), 16000, 160)


@code("nnAudio STFT, magnitudes", "nnAudio")
def nnaudio_stft() -> Subject:
    kinds = import_module("nnAudio.features")
    model = kinds.STFT(n_fft=256, hop_length=128, output_format="Magnitude", verbose=False)
    return Subject(model, _torch().randn(1, 2560), 16000, 128)


@code("nnAudio CQT", "nnAudio")
def nnaudio_cqt() -> Subject:
    kinds = import_module("nnAudio.features")
    model = kinds.CQT1992v2(sr=8000, hop_length=160, fmin=220, n_bins=24, verbose=False)
    return Subject(model, _torch().randn(1, 4800), 8000, 160)


@code("torchlibrosa log mel", "torchlibrosa")
def torchlibrosa_mel() -> Subject:
    kinds, torch = import_module("torchlibrosa"), _torch()
    spectrum = kinds.Spectrogram(n_fft=512, hop_length=160)
    return Subject(
        torch.nn.Sequential(spectrum, kinds.LogmelFilterBank(sr=16000, n_fft=512, n_mels=40)),
        torch.randn(1, 3200),
        16000,
        160,
    )


@code("asteroid-filterbanks, there and back", "asteroid-filterbanks")
def filterbanks() -> Subject:
    kinds, torch = import_module("asteroid_filterbanks"), _torch()
    encoder, decoder = (
        make(kinds.STFTFB(n_filters=64, kernel_size=64, stride=16)) for make in (kinds.Encoder, kinds.Decoder)
    )
    return Subject(torch.nn.Sequential(encoder, decoder), torch.randn(1, 1, 800), 16000, 16)


@code("residual vector quantiser", "vector-quantize-pytorch")
def residual_quantiser() -> Subject:
    kinds, torch = import_module("vector_quantize_pytorch"), _torch()
    model = kinds.ResidualVQ(dim=16, codebook_size=64, num_quantizers=4)
    return Subject(
        model,
        torch.randn(1, 40, 16),
        50,
        change="without the losses",
        options={"dynamic": {"x": {1: "T"}}},
        outputs=(0, 1),
    )


@code("finite scalar quantiser", "vector-quantize-pytorch")
def scalar_quantiser() -> Subject:
    kinds, torch = import_module("vector_quantize_pytorch"), _torch()
    return Subject(
        kinds.FSQ(levels=[8, 5, 5, 5]), torch.randn(1, 40, 4), 50, options={"dynamic": {"z": {1: "T"}}}
    )


@code("audio-encoders-pytorch encoder", "audio-encoders-pytorch")
def audio_encoder() -> Subject:
    kinds, torch = import_module("audio_encoders_pytorch"), _torch()
    model = kinds.Encoder1d(
        in_channels=2, channels=8, multipliers=[2, 1, 1], factors=[2, 2], num_blocks=[1, 1]
    )
    return Subject(model, torch.randn(1, 2, 512), 44100)


@code("HTDemucs", "demucs")
def htdemucs() -> Subject:
    model = import_module("demucs.htdemucs").HTDemucs(
        ["a", "b"],
        channels=8,
        nfft=1024,
        depth=4,
        t_layers=1,
        t_heads=2,
        bottom_channels=16,
        use_train_segment=False,
    )
    return Subject(model, _torch().randn(1, 2, 8192), 44100)


@code("MDCT, there and back", "torch-mdct")
def modified_cosine_transform() -> Subject:
    kinds, torch = import_module("torch_mdct"), _torch()
    return Subject(torch.nn.Sequential(kinds.MDCT(64), kinds.IMDCT(64)), torch.randn(1, 800), 16000)


@code("julius resampling", "julius")
def julius_resampling() -> Subject:
    return Subject(import_module("julius").ResampleFrac(4, 5), _torch().randn(1, 1, 800), 16000)


@code("julius bands", "julius")
def julius_bands() -> Subject:
    model = import_module("julius").SplitBands(16000, n_bands=4, fft=False)
    return Subject(model, _torch().randn(1, 1, 2000), 16000)


@code("penn FCNF0", "penn")
def penn() -> Subject:
    sys.modules.setdefault("torbi", ModuleType("torbi"))
    model = import_module("penn").model.Fcnf0()
    return Subject(
        model, _torch().randn(1, 1, 1024), 8000, change="without its decoder, which needs an older PyTorch"
    )
