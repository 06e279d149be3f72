"""Enhancement and separation."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from bench.torch_codes.author_streams import denoiser_stream
from bench.torch_codes.published_model import ModuleCase, import_torch, published_model


@published_model("denoiser Demucs", "denoiser")
def denoiser() -> ModuleCase:
    model = import_module("denoiser.demucs").Demucs(hidden=4, depth=3, resample=2, normalize=False)
    return ModuleCase(model, import_torch().randn(1, 1, 800), 16000, twin=denoiser_stream(model))


@published_model("denoiser Demucs without resampling", "denoiser")
def denoiser_plain() -> ModuleCase:
    model = import_module("denoiser.demucs").Demucs(hidden=4, depth=3, resample=1, normalize=False)
    return ModuleCase(model, import_torch().randn(1, 1, 800), 16000, twin=denoiser_stream(model))


@published_model("asteroid ConvTasNet, causal", "asteroid")
def asteroid_tasnet() -> ModuleCase:
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
    return ModuleCase(model, import_torch().randn(1, 800), 8000)


@published_model("asteroid ConvTasNet, global norm", "asteroid")
def asteroid_tasnet_global() -> ModuleCase:
    model = import_module("asteroid.models").ConvTasNet(
        2, n_filters=64, bn_chan=32, hid_chan=64, skip_chan=32, n_blocks=2, n_repeats=1
    )
    return ModuleCase(model, import_torch().randn(1, 800), 8000)


@published_model("asteroid DPRNN", "asteroid")
def asteroid_dprnn() -> ModuleCase:
    model = import_module("asteroid.models").DPRNNTasNet(
        2, n_repeats=2, hid_size=16, bn_chan=16, chunk_size=20, norm_type="cLN", bidirectional=False
    )
    return ModuleCase(model, import_torch().randn(1, 800), 8000)


@published_model("asteroid DCCRN", "asteroid")
def asteroid_dccrn() -> ModuleCase:
    models = import_module("asteroid.models")
    product = np.prod

    def integer_product(sizes: Any, **options: Any) -> Any:
        return product(sizes, **options) if options else int(product(sizes))

    with mock.patch.object(np, "prod", integer_product):
        model = models.DCCRNet(architecture="DCCRN-CL")
    return ModuleCase(
        model,
        import_torch().randn(1, 8000),
        16000,
        change="a size made an int, without which PyTorch refuses it",
    )


@published_model("asteroid LSTM-TasNet", "asteroid")
def asteroid_lstm() -> ModuleCase:
    model = import_module("asteroid.models").LSTMTasNet(2, hid_size=32, n_layers=2, bidirectional=False)
    return ModuleCase(model, import_torch().randn(1, 800), 8000)


@published_model("asteroid SuDoRM-RF", "asteroid")
def asteroid_sudormrf() -> ModuleCase:
    model = import_module("asteroid.models").SuDORMRFNet(2, bn_chan=16, num_blocks=2, n_filters=32)
    return ModuleCase(model, import_torch().randn(1, 800), 8000)


@published_model("asteroid DeMask", "asteroid")
def asteroid_demask() -> ModuleCase:
    model = import_module("asteroid.models").DeMask(norm_type="cLN")
    return ModuleCase(model, import_torch().randn(1, 8192), 16000)


@published_model("torchaudio ConvTasNet", "torchaudio")
def torchaudio_tasnet() -> ModuleCase:
    model = import_module("torchaudio.models").ConvTasNet(
        2, enc_num_feats=32, msk_num_feats=16, msk_num_hidden_feats=32, msk_num_layers=2, msk_num_stacks=1
    )
    return ModuleCase(model, import_torch().randn(1, 1, 803), 8000)


@published_model("speechbrain mask network", "speechbrain")
def speechbrain_tasnet() -> ModuleCase:
    package, torch = import_module("speechbrain.lobes.models.conv_tasnet"), import_torch()
    return ModuleCase(package.MaskNet(32, 16, 32, 3, 3, 2, 2, "cLN", True), torch.randn(1, 32, 60), 2000)


@published_model("ESPnet TCN separator", "espnet")
def espnet_tcn() -> ModuleCase:
    package, torch = import_module("espnet2.enh.separator.tcn_separator"), import_torch()
    model = package.TCNSeparator(
        32, layer=3, stack=2, bottleneck_dim=16, hidden_dim=32, causal=True, norm_type="cLN"
    )
    return ModuleCase(model, {"input": torch.randn(1, 60, 32), "ilens": torch.tensor([60])}, 100)


@published_model("ESPnet RNN separator", "espnet")
def espnet_rnn() -> ModuleCase:
    package, torch = import_module("espnet2.enh.separator.rnn_separator"), import_torch()
    model = package.RNNSeparator(32, rnn_type="lstm", layer=2, unit=32)
    return ModuleCase(model, {"input": torch.randn(1, 60, 32), "ilens": torch.tensor([60])}, 100)


@published_model("Open-Unmix, one direction", "openunmix")
def openunmix() -> ModuleCase:
    package, torch = import_module("openunmix.model"), import_torch()
    model = package.OpenUnmix(nb_bins=257, nb_channels=1, hidden_size=64, unidirectional=True)
    return ModuleCase(model, torch.rand(1, 1, 257, 40), 100)


@published_model("Open-Unmix, both directions", "openunmix")
def openunmix_both() -> ModuleCase:
    package, torch = import_module("openunmix.model"), import_torch()
    return ModuleCase(
        package.OpenUnmix(nb_bins=257, nb_channels=1, hidden_size=64), torch.rand(1, 1, 257, 40), 100
    )


@published_model("Demucs v3", "demucs")
def demucs() -> ModuleCase:
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
    return ModuleCase(model, import_torch().randn(1, 2, 4096), 44100)


@published_model("BS-RoFormer", "bs-roformer")
def bs_roformer() -> ModuleCase:
    model = import_module("bs_roformer").BSRoformer(
        dim=16,
        depth=1,
        heads=2,
        dim_head=8,
        time_transformer_depth=1,
        freq_transformer_depth=1,
        flash_attn=False,
    )
    return ModuleCase(model, import_torch().randn(1, 16384), 44100)


@published_model("DeepFilterNet 3", "deepfilternet")
def deepfilternet() -> ModuleCase:
    stub: Any = ModuleType("torchaudio.backend.common")
    stub.AudioMetaData = object
    sys.modules.setdefault("torchaudio.backend", ModuleType("torchaudio.backend"))
    sys.modules.setdefault(stub.__name__, stub)
    package, torch = import_module("df.deepfilternet3"), import_torch()
    import_module("df.config").config.use_defaults()
    model = package.DfNet(torch.rand(481, 32), torch.rand(32, 481))
    return ModuleCase(
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


@published_model("PyNeuralFx gated convolutions", "pyneuralfx")
def gated_effect() -> ModuleCase:
    package, torch = import_module("pyneuralfx.models.cnn.gcn"), import_torch()
    model = package.SnapShotGCN(1, 1, 44100, n_blocks=4, n_channels=4)
    return ModuleCase(model, {"x": torch.randn(1, 1, 400), "c": None}, 44100)
