"""Neural codecs and vocoders."""

from importlib import import_module
from typing import Any

from bench.torch_codes.author_streams import moshi_stream
from bench.torch_codes.published_model import ModuleCase, import_torch, published_model

WITHOUT_LOSSES = "without the losses, means over the whole stream"
"""The change to codecs whose losses cannot stream."""


@published_model("EnCodec encoder", "encodec")
def encodec_encoder() -> ModuleCase:
    model = import_module("encodec.model").EncodecModel.encodec_model_24khz(pretrained=False)
    return ModuleCase(model.encoder, import_torch().randn(1, 1, 4800), 24000, 320)


@published_model("EnCodec decoder", "encodec")
def encodec_decoder() -> ModuleCase:
    model = import_module("encodec.model").EncodecModel.encodec_model_24khz(pretrained=False)
    return ModuleCase(model.decoder, import_torch().randn(1, 128, 20), 75)


@published_model("EnCodec quantiser", "encodec")
def encodec_quantiser() -> ModuleCase:
    model = import_module("encodec.model").EncodecModel.encodec_model_24khz(pretrained=False)
    for layer in model.quantizer.vq.layers:
        layer._codebook.inited.fill_(1)
        layer._codebook.embed.normal_()
    torch = import_torch()

    class Encode(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quantizer = model.quantizer

        def forward(self, x: Any) -> Any:
            return self.quantizer.encode(x, 75, 6.0)

    return ModuleCase(Encode(), torch.randn(1, 128, 20), 75, change="bandwidth fixed in a wrapper")


@published_model("SNAC encoder", "snac")
def snac_encoder() -> ModuleCase:
    model = _snac()
    return ModuleCase(model.encoder, import_torch().randn(1, 1, 512), 24000)


@published_model("SNAC decoder", "snac")
def snac_decoder() -> ModuleCase:
    model = _snac()
    return ModuleCase(model.decoder, import_torch().randn(1, 32, 16), 24000 / 16)


@published_model("SNAC encode", "snac")
def snac_encode() -> ModuleCase:
    return ModuleCase(_snac(), import_torch().randn(1, 1, 512), 24000, options={"method": "encode"})


def _snac() -> Any:
    return import_module("snac").SNAC(
        sampling_rate=24000,
        encoder_dim=8,
        encoder_rates=[2, 8],
        latent_dim=32,
        decoder_dim=64,
        decoder_rates=[8, 2],
        attn_window_size=None,
        vq_strides=[4, 2, 1],
        codebook_size=256,
        noise=False,
    )


@published_model("DAC encoder", "descript-audio-codec")
def dac_encoder() -> ModuleCase:
    return ModuleCase(_dac().encoder, import_torch().randn(1, 1, 512), 44100, 64)


@published_model("DAC decoder", "descript-audio-codec")
def dac_decoder() -> ModuleCase:
    return ModuleCase(_dac().decoder, import_torch().randn(1, 32, 24), 44100 / 16)


@published_model("DAC encode", "descript-audio-codec")
def dac_encode() -> ModuleCase:
    options = {"method": "encode"}
    x = import_torch().randn(1, 1, 512)
    return ModuleCase(_dac(), x, 44100, 64, WITHOUT_LOSSES, options, outputs=(0, 1, 2))


def _dac() -> Any:
    return import_module("dac").DAC(
        encoder_dim=8,
        encoder_rates=[2, 8],
        decoder_dim=64,
        decoder_rates=[8, 2],
        codebook_size=256,
        n_codebooks=4,
    )


def _vocos(padding: str) -> ModuleCase:
    models, heads = import_module("vocos.models"), import_module("vocos.heads")
    torch = import_torch()
    backbone = models.VocosBackbone(input_channels=100, dim=128, intermediate_dim=384, num_layers=4)
    head = heads.ISTFTHead(dim=128, n_fft=1024, hop_length=256, padding=padding)
    return ModuleCase(torch.nn.Sequential(backbone, head), torch.randn(1, 100, 24), 24000 / 256)


@published_model("Vocos backbone and head", "vocos")
def vocos() -> ModuleCase:
    return _vocos("center")


@published_model("Vocos with same padding", "vocos")
def vocos_same() -> ModuleCase:
    return _vocos("same")


@published_model("Vocos features", "vocos", "torchaudio")
def vocos_features() -> ModuleCase:
    features = import_module("vocos.feature_extractors")
    return ModuleCase(features.MelSpectrogramFeatures(), import_torch().randn(1, 4096), 24000, 256)


def _mimi() -> Any:
    return import_module("moshi.models.loaders").get_mimi(None)


@published_model("Mimi decoder", "moshi")
def mimi_decoder() -> ModuleCase:
    decoder = _mimi().decoder
    return ModuleCase(decoder, import_torch().randn(1, 512, 12), 25, twin=moshi_stream(decoder))


@published_model("Mimi encoder", "moshi")
def mimi_encoder() -> ModuleCase:
    encoder = _mimi().encoder
    return ModuleCase(encoder, import_torch().randn(1, 1, 9600), 24000, 960, twin=moshi_stream(encoder))


@published_model("Mimi transformer", "moshi")
def mimi_transformer() -> ModuleCase:
    transformer = _mimi().decoder_transformer
    return ModuleCase(transformer, import_torch().randn(1, 512, 12), 25, twin=moshi_stream(transformer))


@published_model("Mimi encode", "moshi")
def mimi_encode() -> ModuleCase:
    return ModuleCase(_mimi(), import_torch().randn(1, 1, 19200), 24000, 1920, options={"method": "encode"})


@published_model("Mimi decode", "moshi")
def mimi_decode() -> ModuleCase:
    mimi, codes = _mimi(), import_torch().randint(0, 2048, (1, 8, 12))
    return ModuleCase(mimi, codes, 12.5, options={"method": "decode"}, twin=moshi_stream(mimi, "decode"))


def _hf_mimi() -> Any:
    hf = import_module("transformers")
    config = hf.MimiConfig(
        hidden_size=64,
        num_filters=8,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=16,
        intermediate_size=128,
        codebook_size=256,
        codebook_dim=32,
        num_quantizers=8,
        vector_quantization_hidden_dimension=32,
        sliding_window=50,
        upsample_groups=64,
    )
    return hf.MimiModel(config)


@published_model("transformers Mimi encode", "transformers")
def hf_mimi_encode() -> ModuleCase:
    return ModuleCase(
        _hf_mimi(), import_torch().randn(1, 1, 19200), 24000, 1920, options={"method": "encode"}
    )


@published_model("transformers Mimi decode", "transformers")
def hf_mimi_decode() -> ModuleCase:
    torch = import_torch()
    return ModuleCase(_hf_mimi(), torch.randint(0, 256, (1, 8, 12)), 12.5, options={"method": "decode"})


def _hf_encodec() -> Any:
    hf = import_module("transformers")
    return hf.EncodecModel(
        hf.EncodecConfig(num_filters=8, hidden_size=64, codebook_dim=64, num_lstm_layers=2)
    )


@published_model("transformers EnCodec encoder", "transformers")
def hf_encodec_encoder() -> ModuleCase:
    return ModuleCase(_hf_encodec().encoder, import_torch().randn(1, 1, 4800), 24000, 320)


@published_model("transformers EnCodec decoder", "transformers")
def hf_encodec_decoder() -> ModuleCase:
    return ModuleCase(_hf_encodec().decoder, import_torch().randn(1, 64, 20), 75)


@published_model("transformers EnCodec encode", "transformers")
def hf_encodec_encode() -> ModuleCase:
    return ModuleCase(
        _hf_encodec(), import_torch().randn(1, 1, 4800), 24000, 320, options={"method": "encode"}
    )


def _hf_dac() -> Any:
    hf = import_module("transformers")
    return hf.DacModel(
        hf.DacConfig(
            encoder_hidden_size=8,
            downsampling_ratios=[2, 8],
            decoder_hidden_size=64,
            upsampling_ratios=[8, 2],
            n_codebooks=4,
            codebook_size=256,
        )
    )


@published_model("transformers DAC encode", "transformers")
def hf_dac_encode() -> ModuleCase:
    options = {"method": "encode"}
    x = import_torch().randn(1, 1, 512)
    return ModuleCase(_hf_dac(), x, 44100, 64, WITHOUT_LOSSES, options, outputs=(1, 2, 3))


@published_model("transformers DAC decoder", "transformers")
def hf_dac_decoder() -> ModuleCase:
    return ModuleCase(_hf_dac().decoder, import_torch().randn(1, 32, 24), 44100 / 16)


@published_model("SpeechTokenizer encoder", "speechtokenizer")
def speechtokenizer() -> ModuleCase:
    return _speechtokenizer(bidirectional=False)


@published_model("SpeechTokenizer encoder, both directions", "speechtokenizer")
def speechtokenizer_both() -> ModuleCase:
    return _speechtokenizer(bidirectional=True)


def _speechtokenizer(bidirectional: bool) -> ModuleCase:
    package = import_module("speechtokenizer.modules.seanet")
    small = {"n_filters": 8, "dimension": 64, "ratios": [8, 5, 4, 2], "lstm": 2}
    model = package.SEANetEncoder(**small, bidirectional=bidirectional)
    return ModuleCase(model, import_torch().randn(1, 1, 4800), 16000, 320)


@published_model("SoundStream encoder", "soundstream")
def soundstream() -> ModuleCase:
    model = import_module("soundstream").SoundStream(n_q=4, codebook_size=64, D=64, C=8)
    return ModuleCase(model.encoder, import_torch().randn(1, 1, 3200), 16000, 320)


@published_model("SoundStream decoder", "soundstream")
def soundstream_decoder() -> ModuleCase:
    model = import_module("soundstream").SoundStream(n_q=4, codebook_size=64, D=64, C=8)
    return ModuleCase(model.decoder, import_torch().randn(1, 64, 12), 50)


@published_model("HiFi-GAN generator", "speechbrain")
def hifigan() -> ModuleCase:
    package = import_module("speechbrain.lobes.models.HifiGAN")
    model = package.HifiganGenerator(
        80, 1, "1", [[1, 3, 5], [1, 3, 5], [1, 3, 5]], [3, 7, 11], [16, 16, 4, 4], 64, [8, 8, 2, 2]
    )
    return ModuleCase(model, import_torch().randn(1, 80, 20), 22050 / 256)


@published_model("BigVGAN", "bigvgan")
def bigvgan() -> ModuleCase:
    env, package = import_module("bigvgan.env"), import_module("bigvgan")
    h = env.AttrDict(
        num_mels=80,
        upsample_rates=[4, 4, 2, 2],
        upsample_kernel_sizes=[8, 8, 4, 4],
        upsample_initial_channel=64,
        resblock="1",
        resblock_kernel_sizes=[3, 7],
        resblock_dilation_sizes=[[1, 3, 5], [1, 3, 5]],
        activation="snakebeta",
        snake_logscale=True,
    )
    return ModuleCase(package.BigVGAN(h), import_torch().randn(1, 80, 16), 22050 / 64)


@published_model("transformers UnivNet", "transformers")
def univnet() -> ModuleCase:
    hf, torch = import_module("transformers"), import_torch()
    model = hf.UnivNetModel(hf.UnivNetConfig(model_hidden_channels=16))
    return ModuleCase(
        model,
        {"input_features": torch.randn(1, 20, 100), "noise_sequence": torch.randn(1, 20, 64)},
        24000 / 256,
    )


@published_model("transformers SpeechT5 HiFi-GAN", "transformers")
def speecht5() -> ModuleCase:
    hf = import_module("transformers")
    model = hf.SpeechT5HifiGan(hf.SpeechT5HifiGanConfig(upsample_initial_channel=64))
    return ModuleCase(model, import_torch().randn(1, 20, 80), 16000 / 256)


@published_model("transformers VITS HiFi-GAN", "transformers")
def vits() -> ModuleCase:
    hf = import_module("transformers")
    model = hf.VitsModel(hf.VitsConfig(upsample_initial_channel=64)).decoder
    return ModuleCase(model, import_torch().randn(1, 192, 20), 22050 / 256)
