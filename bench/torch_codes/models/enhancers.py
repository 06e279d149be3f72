"""Enhancement and separation."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from bench.torch_codes.author_streams import denoiser_stream
from bench.torch_codes.published_model import Subject, code


def _torch() -> Any:
    return import_module("torch")


@code("denoiser Demucs", "denoiser")
def denoiser() -> Subject:
    model = import_module("denoiser.demucs").Demucs(hidden=4, depth=3, resample=2, normalize=False)
    return Subject(model, _torch().randn(1, 1, 800), 16000, twin=denoiser_stream(model))


@code("denoiser Demucs without resampling", "denoiser")
def denoiser_plain() -> Subject:
    model = import_module("denoiser.demucs").Demucs(hidden=4, depth=3, resample=1, normalize=False)
    return Subject(model, _torch().randn(1, 1, 800), 16000, twin=denoiser_stream(model))


@code("asteroid ConvTasNet, causal", "asteroid")
def asteroid_tasnet() -> Subject:
    model = import_module("asteroid.models").ConvTasNet(
        2,
        n_filters=32,
        bn_chan=16,
        hid_chan=32,
        skip_chan=16,
        n_blocks=2,
        n_repeats=2,
        norm_type="cLN",
        causal=True,
    )
    return Subject(model, _torch().randn(1, 800), 8000)


@code("asteroid ConvTasNet, global norm", "asteroid")
def asteroid_tasnet_global() -> Subject:
    model = import_module("asteroid.models").ConvTasNet(
        2, n_filters=64, bn_chan=32, hid_chan=64, skip_chan=32, n_blocks=2, n_repeats=1
    )
    return Subject(model, _torch().randn(1, 800), 8000)


@code("asteroid DPRNN", "asteroid")
def asteroid_dprnn() -> Subject:
    model = import_module("asteroid.models").DPRNNTasNet(
        2, n_repeats=2, hid_size=16, bn_chan=16, chunk_size=20, norm_type="cLN", bidirectional=False
    )
    return Subject(model, _torch().randn(1, 800), 8000)


@code("asteroid DCCRN", "asteroid")
def asteroid_dccrn() -> Subject:
    models = import_module("asteroid.models")
    product = np.prod

    def integer_product(sizes: Any, **options: Any) -> Any:
        return product(sizes, **options) if options else int(product(sizes))

    with mock.patch.object(np, "prod", integer_product):
        model = models.DCCRNet(architecture="DCCRN-CL")
    return Subject(
        model, _torch().randn(1, 8000), 16000, change="a size made an int, without which PyTorch refuses it"
    )


@code("asteroid LSTM-TasNet", "asteroid")
def asteroid_lstm() -> Subject:
    model = import_module("asteroid.models").LSTMTasNet(2, hid_size=32, n_layers=2, bidirectional=False)
    return Subject(model, _torch().randn(1, 800), 8000)


@code("asteroid SuDoRM-RF", "asteroid")
def asteroid_sudormrf() -> Subject:
    model = import_module("asteroid.models").SuDORMRFNet(2, bn_chan=16, num_blocks=2, n_filters=32)
    return Subject(model, _torch().randn(1, 800), 8000)


@code("asteroid DeMask", "asteroid")
def asteroid_demask() -> Subject:
    model = import_module("asteroid.models").DeMask(norm_type="cLN")
    return Subject(model, _torch().randn(1, 8192), 16000)


@code("torchaudio ConvTasNet", "torchaudio")
def torchaudio_tasnet() -> Subject:
    model = import_module("torchaudio.models").ConvTasNet(
        2, enc_num_feats=32, msk_num_feats=16, msk_num_hidden_feats=32, msk_num_layers=2, msk_num_stacks=1
    )
    return Subject(model, _torch().randn(1, 1, 803), 8000)


@code("speechbrain mask network", "speechbrain")
def speechbrain_tasnet() -> Subject:
    kinds, torch = import_module("speechbrain.lobes.models.conv_tasnet"), _torch()
    return Subject(kinds.MaskNet(32, 16, 32, 3, 3, 2, 2, "cLN", True), torch.randn(1, 32, 60), 2000)


@code("ESPnet TCN separator", "espnet")
def espnet_tcn() -> Subject:
    kinds, torch = import_module("espnet2.enh.separator.tcn_separator"), _torch()
    model = kinds.TCNSeparator(
        32, layer=3, stack=2, bottleneck_dim=16, hidden_dim=32, causal=True, norm_type="cLN"
    )
    return Subject(model, {"input": torch.randn(1, 60, 32), "ilens": torch.tensor([60])}, 100)


@code("ESPnet RNN separator", "espnet")
def espnet_rnn() -> Subject:
    kinds, torch = import_module("espnet2.enh.separator.rnn_separator"), _torch()
    model = kinds.RNNSeparator(32, rnn_type="lstm", layer=2, unit=32)
    return Subject(model, {"input": torch.randn(1, 60, 32), "ilens": torch.tensor([60])}, 100)


@code("Open-Unmix, one direction", "openunmix")
def openunmix() -> Subject:
    kinds, torch = import_module("openunmix.model"), _torch()
    model = kinds.OpenUnmix(nb_bins=257, nb_channels=1, hidden_size=64, unidirectional=True)
    return Subject(model, torch.rand(1, 1, 257, 40), 100)


@code("Open-Unmix, both directions", "openunmix")
def openunmix_both() -> Subject:
    kinds, torch = import_module("openunmix.model"), _torch()
    return Subject(
        kinds.OpenUnmix(nb_bins=257, nb_channels=1, hidden_size=64), torch.rand(1, 1, 257, 40), 100
    )


@code("Demucs v3", "demucs")
def demucs() -> Subject:
    model = import_module("demucs.demucs").Demucs(
        ["a", "b"],
        channels=8,
        depth=3,
        dconv_attn=9,
        dconv_lstm=9,
        norm_starts=9,
        normalize=False,
        resample=False,
    )
    return Subject(model, _torch().randn(1, 2, 4096), 44100)


@code("BS-RoFormer", "bs-roformer")
def bs_roformer() -> Subject:
    model = import_module("bs_roformer").BSRoformer(
        dim=16,
        depth=1,
        heads=2,
        dim_head=8,
        time_transformer_depth=1,
        freq_transformer_depth=1,
        flash_attn=False,
    )
    return Subject(model, _torch().randn(1, 16384), 44100)


@code("DeepFilterNet 3", "deepfilternet")
def deepfilternet() -> Subject:
    stub: Any = ModuleType("torchaudio.backend.common")
    stub.AudioMetaData = object
    sys.modules.setdefault("torchaudio.backend", ModuleType("torchaudio.backend"))
    sys.modules.setdefault(stub.__name__, stub)
    kinds, torch = import_module("df.deepfilternet3"), _torch()
    import_module("df.config").config.use_defaults()
    model = kinds.DfNet(torch.rand(481, 32), torch.rand(32, 481))
    return Subject(
        model,
        {
            "spec": torch.randn(1, 1, 40, 481, 2),
            "feat_erb": torch.randn(1, 1, 40, 32),
            "feat_spec": torch.randn(1, 1, 40, 96, 2),
        },
        100,
        change="without its reader of files, which needs an older torchaudio",
        options={"dynamic": {name: {2: "T"} for name in ("spec", "feat_erb", "feat_spec")}},
    )


@code("PyNeuralFx gated convolutions", "pyneuralfx")
def gated_effect() -> Subject:
    kinds, torch = import_module("pyneuralfx.models.cnn.gcn"), _torch()
    model = kinds.SnapShotGCN(1, 1, 44100, n_blocks=4, n_channels=4)
    return Subject(model, {"x": torch.randn(1, 1, 400), "c": None}, 44100)
