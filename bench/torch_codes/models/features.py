"""Features, filter banks and quantisers."""

import sys
from importlib import import_module
from types import ModuleType

from bench.torch_codes.published_model import ModuleCase, import_torch, published_model


@published_model("nnAudio MelSpectrogram", "nnAudio")
def nnaudio_mel() -> ModuleCase:
    package = import_module("nnAudio.features")
    model = package.MelSpectrogram(sr=16000, n_fft=512, n_mels=40, hop_length=160, verbose=False)
    return ModuleCase(model, import_torch().randn(1, 3200), 16000, 160)


@published_model("nnAudio STFT, magnitudes", "nnAudio")
def nnaudio_stft() -> ModuleCase:
    package = import_module("nnAudio.features")
    model = package.STFT(n_fft=256, hop_length=128, output_format="Magnitude", verbose=False)
    return ModuleCase(model, import_torch().randn(1, 2560), 16000, 128)


@published_model("nnAudio CQT", "nnAudio")
def nnaudio_cqt() -> ModuleCase:
    package = import_module("nnAudio.features")
    model = package.CQT1992v2(sr=8000, hop_length=160, fmin=220, n_bins=24, verbose=False)
    return ModuleCase(model, import_torch().randn(1, 4800), 8000, 160)


@published_model("torchlibrosa log mel", "torchlibrosa")
def torchlibrosa_mel() -> ModuleCase:
    package, torch = import_module("torchlibrosa"), import_torch()
    spectrum = package.Spectrogram(n_fft=512, hop_length=160)
    return ModuleCase(
        torch.nn.Sequential(spectrum, package.LogmelFilterBank(sr=16000, n_fft=512, n_mels=40)),
        torch.randn(1, 3200),
        16000,
        160,
    )


@published_model("asteroid-filterbanks, there and back", "asteroid-filterbanks")
def filterbanks() -> ModuleCase:
    package, torch = import_module("asteroid_filterbanks"), import_torch()
    encoder, decoder = (
        make(package.STFTFB(n_filters=64, kernel_size=64, stride=16))
        for make in (package.Encoder, package.Decoder)
    )
    return ModuleCase(torch.nn.Sequential(encoder, decoder), torch.randn(1, 1, 800), 16000, 16)


@published_model("residual vector quantiser", "vector-quantize-pytorch")
def residual_quantiser() -> ModuleCase:
    package, torch = import_module("vector_quantize_pytorch"), import_torch()
    model = package.ResidualVQ(dim=16, codebook_size=64, num_quantizers=4)
    return ModuleCase(
        model,
        torch.randn(1, 40, 16),
        50,
        change="without the losses",
        options={"dynamic": {"x": {1: "T"}}},
        outputs=(0, 1),
    )


@published_model("finite scalar quantiser", "vector-quantize-pytorch")
def scalar_quantiser() -> ModuleCase:
    package, torch = import_module("vector_quantize_pytorch"), import_torch()
    return ModuleCase(
        package.FSQ(levels=[8, 5, 5, 5]), torch.randn(1, 40, 4), 50, options={"dynamic": {"z": {1: "T"}}}
    )


@published_model("audio-encoders-pytorch encoder", "audio-encoders-pytorch")
def audio_encoder() -> ModuleCase:
    package, torch = import_module("audio_encoders_pytorch"), import_torch()
    model = package.Encoder1d(
        in_channels=2, channels=8, multipliers=[2, 1, 1], factors=[2, 2], num_blocks=[1, 1]
    )
    return ModuleCase(model, torch.randn(1, 2, 512), 44100)


@published_model("HTDemucs", "demucs")
def htdemucs() -> ModuleCase:
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
    return ModuleCase(model, import_torch().randn(1, 2, 8192), 44100)


@published_model("MDCT, there and back", "torch-mdct")
def modified_cosine_transform() -> ModuleCase:
    package, torch = import_module("torch_mdct"), import_torch()
    return ModuleCase(torch.nn.Sequential(package.MDCT(64), package.IMDCT(64)), torch.randn(1, 800), 16000)


@published_model("julius resampling", "julius")
def julius_resampling() -> ModuleCase:
    return ModuleCase(import_module("julius").ResampleFrac(4, 5), import_torch().randn(1, 1, 800), 16000)


@published_model("julius bands", "julius")
def julius_bands() -> ModuleCase:
    model = import_module("julius").SplitBands(16000, n_bands=4, fft=False)
    return ModuleCase(model, import_torch().randn(1, 1, 2000), 16000)


@published_model("penn FCNF0", "penn")
def penn() -> ModuleCase:
    sys.modules.setdefault("torbi", ModuleType("torbi"))
    model = import_module("penn").model.Fcnf0()
    return ModuleCase(
        model,
        import_torch().randn(1, 1, 1024),
        8000,
        change="without its decoder, which needs an older PyTorch",
    )
