"""Recognition, detection and features."""

from importlib import import_module
from typing import Any

from bench.torch_codes.author_streams import emformer_stream, fsmn_stream, tcn_stream
from bench.torch_codes.published_model import ModuleCase, import_torch, published_model
from pulse import Chunking


@published_model("torchaudio Wav2Letter", "torchaudio")
def wav2letter() -> ModuleCase:
    model = import_module("torchaudio.models").Wav2Letter(num_classes=30, input_type="mfcc", num_features=13)
    return ModuleCase(model, import_torch().randn(1, 13, 60), 100)


@published_model("torchaudio Wav2Letter on samples", "torchaudio")
def wav2letter_samples() -> ModuleCase:
    model = import_module("torchaudio.models").Wav2Letter(num_classes=30)
    return ModuleCase(model, import_torch().randn(1, 1, 2000), 16000)


@published_model("torchaudio DeepSpeech", "torchaudio")
def deepspeech() -> ModuleCase:
    model = import_module("torchaudio.models").DeepSpeech(40, n_hidden=64)
    return ModuleCase(model, import_torch().randn(1, 1, 40, 40), 100)


@published_model("torchaudio Conformer", "torchaudio")
def torchaudio_conformer() -> ModuleCase:
    model, torch = import_module("torchaudio.models").Conformer(32, 4, 64, 2, 15), import_torch()
    return ModuleCase(model, {"input": torch.randn(1, 40, 32), "lengths": torch.tensor([40])}, 25)


@published_model("torchaudio Emformer infer", "torchaudio")
def emformer() -> ModuleCase:
    torch = import_torch()
    model = import_module("torchaudio.models").Emformer(
        32, 4, 64, 2, 4, left_context_length=8, right_context_length=1
    )
    _, _, states = model.infer(torch.zeros(1, 5, 32), torch.tensor([5]), None)
    states = [[torch.zeros_like(state) for state in layer] for layer in states]
    return ModuleCase(
        model,
        {"input": torch.randn(1, 5, 32), "lengths": torch.tensor([5]), "states": states},
        25,
        options={"method": "infer", "dynamic": {}},
        twin=emformer_stream(model),
        chunking=Chunking(axes={"input": 1}, context={"input": 1}),
    )


@published_model("torchaudio HuBERT extractor", "torchaudio")
def hubert_extractor() -> ModuleCase:
    components = import_module("torchaudio.models.wav2vec2.components")
    model = components._get_feature_extractor("layer_norm", [(32, 10, 5), (32, 3, 2), (32, 2, 2)], False)
    return ModuleCase(model, {"x": import_torch().randn(1, 2000), "length": None}, 16000)


@published_model("torchaudio MelSpectrogram", "torchaudio")
def mel() -> ModuleCase:
    return ModuleCase(
        import_module("torchaudio.transforms").MelSpectrogram(), import_torch().randn(1, 2000), 16000, 200
    )


@published_model("torchaudio MFCC", "torchaudio")
def mfcc() -> ModuleCase:
    return ModuleCase(
        import_module("torchaudio.transforms").MFCC(log_mels=True), import_torch().randn(1, 2000), 16000, 200
    )


@published_model("torchaudio Resample", "torchaudio")
def resample() -> ModuleCase:
    return ModuleCase(
        import_module("torchaudio.transforms").Resample(48000, 16000),
        import_torch().randn(1, 4800),
        48000,
        480,
    )


@published_model("torchaudio ECAPA-like x-vector frames", "speechbrain")
def xvector() -> ModuleCase:
    model = import_module("speechbrain.lobes.models.Xvector").Xvector(in_channels=40, tdnn_channels=[32] * 5)
    return ModuleCase(model, import_torch().randn(1, 60, 40), 100)


@published_model("speechbrain CRDNN", "speechbrain")
def crdnn() -> ModuleCase:
    return _crdnn()


@published_model("speechbrain CRDNN with LSTM", "speechbrain")
def crdnn_lstm() -> ModuleCase:
    return _crdnn(rnn_class=import_module("speechbrain.nnet.RNN").LSTM)


def _crdnn(**options: Any) -> ModuleCase:
    model = import_module("speechbrain.lobes.models.CRDNN").CRDNN(
        input_shape=[None, None, 40],
        cnn_channels=[8, 16],
        rnn_layers=2,
        rnn_neurons=32,
        rnn_bidirectional=False,
        dnn_neurons=32,
        **options,
    )
    return ModuleCase(model, import_torch().randn(1, 60, 40), 100)


@published_model("transformers wav2vec2 extractor", "transformers")
def wav2vec2_extractor() -> ModuleCase:
    hf = import_module("transformers")
    model = hf.Wav2Vec2Model(_small(hf.Wav2Vec2Config, feat_extract_norm="layer", do_stable_layer_norm=True))
    return ModuleCase(model.feature_extractor, import_torch().randn(1, 3200), 16000)


@published_model("transformers wav2vec2", "transformers")
def wav2vec2() -> ModuleCase:
    hf = import_module("transformers")
    model = hf.Wav2Vec2Model(_small(hf.Wav2Vec2Config, feat_extract_norm="layer", do_stable_layer_norm=True))
    return ModuleCase(model, import_torch().randn(1, 3200), 16000)


def _small(config: Any, **more: Any) -> Any:
    return config(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        conv_dim=(16,) * 7,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        **more,
    )


@published_model("pytorch-tcn", "pytorch-tcn")
def tcn() -> ModuleCase:
    model = import_module("pytorch_tcn").TCN(
        num_inputs=16, num_channels=[32, 32, 32, 32], kernel_size=3, causal=True
    )
    return ModuleCase(model, import_torch().randn(1, 16, 60), 100, twin=tcn_stream(model))


@published_model("pytorch-tcn with skips and gates", "pytorch-tcn")
def tcn_gated() -> ModuleCase:
    model = import_module("pytorch_tcn").TCN(
        num_inputs=16,
        num_channels=[32, 32, 32],
        kernel_size=3,
        use_skip_connections=True,
        use_gate=True,
        embedding_shapes=None,
        use_norm="layer_norm",
    )
    return ModuleCase(model, import_torch().randn(1, 16, 60), 100, twin=tcn_stream(model))


@published_model("FunASR FSMN VAD", "funasr")
def fsmn() -> ModuleCase:
    package = import_module("funasr.models.fsmn_vad_streaming.encoder")
    model = package.FSMN(400, 140, 4, 250, 128, 20, 0, 1, 0, 140, 248)
    return ModuleCase(model, import_torch().randn(1, 60, 400), 100, twin=fsmn_stream(model))


@published_model("conformer, causal convolution", "conformer")
def conformer_block() -> ModuleCase:
    module = import_module("conformer").ConformerConvModule(dim=32, causal=True, kernel_size=15)
    return ModuleCase(module, import_torch().randn(1, 40, 32), 100)


@published_model("local-attention transformer", "local-attention")
def local_attention() -> ModuleCase:
    package, torch = import_module("local_attention"), import_torch()
    model = package.LocalTransformer(
        num_tokens=64, dim=32, depth=2, heads=2, dim_head=16, max_seq_len=4096, local_attn_window_size=16
    )
    return ModuleCase(model, torch.randint(0, 64, (1, 40)), 25)


@published_model("x-transformers decoder, rotary", "x-transformers")
def x_transformer() -> ModuleCase:
    package, torch = import_module("x_transformers"), import_torch()
    model = package.ContinuousTransformerWrapper(
        dim_in=16,
        dim_out=16,
        max_seq_len=0,
        use_abs_pos_emb=False,
        attn_layers=package.Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, rotary_pos_emb=True),
    )
    return ModuleCase(model, torch.randn(1, 40, 16), 25, max_context=100)


@published_model("transformers Mistral language model", "transformers")
def llama() -> ModuleCase:
    hf, torch = import_module("transformers"), import_torch()
    config = hf.MistralConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=16,
        head_dim=8,
    )
    return ModuleCase(hf.MistralForCausalLM(config), torch.randint(0, 64, (1, 40)), 25)


@published_model("torchcrepe", "torchcrepe")
def crepe() -> ModuleCase:
    options = {"dynamic": {"x": {0: "T"}}}
    return ModuleCase(
        import_module("torchcrepe").Crepe("tiny"), import_torch().randn(4, 1024), 100, options=options
    )


@published_model("pesto", "pesto-pitch")
def pesto() -> ModuleCase:
    package, torch = import_module("pesto.model"), import_torch()
    model = package.Resnet1d(n_chan_layers=[20, 20, 10, 1])
    return ModuleCase(model, torch.randn(20, 1, 216), 100, options={"dynamic": {"x": {0: "T"}}})


@published_model("ESPnet contextual block conformer", "espnet")
def espnet_block() -> ModuleCase:
    package, torch = import_module("espnet2.asr.encoder.contextual_block_conformer_encoder"), import_torch()
    model = package.ContextualBlockConformerEncoder(40, 32, 4, 64, 2, block_size=8, hop_size=4, look_ahead=2)
    return ModuleCase(model, {"xs_pad": torch.randn(1, 60, 40), "ilens": torch.tensor([60])}, 100)


@published_model("silero VAD", "silero-vad")
def silero() -> ModuleCase:
    model, torch = import_module("silero_vad").load_silero_vad(), import_torch()
    return ModuleCase(model, (torch.randn(1, 512), 16000), 16000 / 512, options={"dynamic": {}})
