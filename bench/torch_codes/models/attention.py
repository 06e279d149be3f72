"""Transformers: windows, chunks, relative positions; refused ones with their reason."""

import math
from importlib import import_module
from typing import Any

from bench.torch_codes.published_model import ModuleCase, import_torch, published_model

SMALL_CONFIG = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "use_cache": False,
}
"""The sizes of small transformers, by the names of Hugging Face's configurations."""


@published_model("transformers Mistral, sliding window", "transformers")
def mistral() -> ModuleCase:
    hf, torch = import_module("transformers"), import_torch()
    model = hf.MistralModel(hf.MistralConfig(**SMALL_CONFIG, sliding_window=16))
    options = {"dynamic": {"inputs_embeds": {1: "T"}}}
    return ModuleCase(model, {"inputs_embeds": torch.randn(1, 40, 32)}, 25, options=options)


@published_model("transformers Llama, 100 frames", "transformers")
def llama_context() -> ModuleCase:
    hf, torch = import_module("transformers"), import_torch()
    model = hf.LlamaModel(hf.LlamaConfig(**SMALL_CONFIG))
    options = {"dynamic": {"inputs_embeds": {1: "T"}}}
    return ModuleCase(model, {"inputs_embeds": torch.randn(1, 40, 32)}, 25, options=options, max_context=100)


@published_model("transformers Mimi transformer", "transformers")
def mimi_transformer() -> ModuleCase:
    hf, torch = import_module("transformers"), import_torch()
    package = import_module("transformers.models.mimi.modeling_mimi")
    small = {name: value for name, value in SMALL_CONFIG.items() if name != "vocab_size"}
    config = hf.MimiConfig(**small, sliding_window=10)
    config._attn_implementation = "sdpa"
    options = {"dynamic": {"hidden_states": {1: "T"}}}
    return ModuleCase(package.MimiTransformerModel(config), torch.randn(1, 40, 32), 25, options=options)


@published_model("transformers Whisper encoder", "transformers")
def whisper() -> ModuleCase:
    hf = import_module("transformers")
    config = hf.WhisperConfig(
        d_model=32,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=20,
        max_source_positions=100,
    )
    return ModuleCase(hf.WhisperModel(config).encoder, import_torch().randn(1, 20, 200), 100)


@published_model("moshi transformer with a context", "moshi")
def moshi_transformer() -> ModuleCase:
    package = import_module("moshi.modules.transformer")
    model = package.StreamingTransformer(
        d_model=32,
        num_heads=4,
        num_layers=2,
        dim_feedforward=64,
        causal=True,
        context=10,
        positional_embedding="rope",
    )
    return ModuleCase(model, import_torch().randn(1, 40, 32), 25)


@published_model("rotary-embedding-torch, a window", "rotary-embedding-torch")
def rotary() -> ModuleCase:
    torch = import_torch()
    embedding = import_module("rotary_embedding_torch").RotaryEmbedding(dim=8, cache_if_possible=False)

    class Window(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rotary, self.heads = embedding, torch.nn.Linear(16, 48)

        def forward(self, x: Any) -> Any:
            frames = x.shape[1]
            q, k, v = (t.view(1, frames, 2, 8).transpose(1, 2) for t in self.heads(x).chunk(3, -1))
            q, k = (self.rotary.rotate_queries_or_keys(vectors) for vectors in (q, k))
            behind = torch.arange(frames)[:, None] - torch.arange(frames)
            visible = (behind >= 0) & (behind < 9)
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=visible)
            return y.transpose(1, 2).reshape(1, frames, 16)

    change = "without its cache of angles, which a call fills"
    return ModuleCase(Window(), torch.randn(1, 40, 16), 25, change=change)


@published_model("relative attention in chunks, as wenet writes it", "torch")
def wenet() -> ModuleCase:
    return _relative_attention(shifted=False)


@published_model("relative attention in chunks with a shift, as NeMo writes it", "torch")
def nemo() -> ModuleCase:
    return _relative_attention(shifted=True)


def _relative_attention(shifted: bool) -> ModuleCase:
    """Return chunks of four frames that see two earlier chunks; positions by frame, or by distance and shifted."""
    torch = import_torch()
    nn, width, heads, longest = torch.nn, 32, 4, 5000

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
            self.positions = nn.Linear(width, width, bias=False)
            self.u, self.w = (nn.Parameter(torch.randn(heads, width // heads)) for _ in range(2))
            steps = torch.arange(longest - 1, -longest, -1.0) if shifted else torch.arange(float(longest))
            angles = steps[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
            self.register_buffer("table", torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[None])

        def forward(self, x: Any) -> Any:
            frames = x.shape[1]

            def split(y: Any) -> Any:
                return y.view(1, y.shape[1], heads, width // heads)

            start = longest - frames if shifted else 0
            table = self.table[:, start : start + (2 * frames - 1 if shifted else frames)]
            q, k, v, p = (
                split(projected) for projected in (self.q(x), self.k(x), self.v(x), self.positions(table))
            )
            scores = (q + self.u).transpose(1, 2) @ k.permute(0, 2, 3, 1)
            more = (q + self.w).transpose(1, 2) @ p.permute(0, 2, 3, 1)
            if shifted:
                more = nn.functional.pad(more, (1, 0)).view(1, heads, -1, frames)[:, :, 1:]
                more = more.reshape(1, heads, frames, 2 * frames - 1)[..., :frames]
            chunk = torch.div(torch.arange(frames), 4, rounding_mode="trunc")
            behind = chunk[:, None] - chunk
            hidden = ~((behind >= 0) & (behind <= 2))
            scores = ((scores + more) / math.sqrt(width // heads)).masked_fill(hidden, -10000.0)
            weights = torch.softmax(scores, -1).masked_fill(hidden, 0.0)
            return self.out((weights @ v.transpose(1, 2)).transpose(1, 2).flatten(2))

    return ModuleCase(Attention(), torch.randn(1, 40, width), 25)


@published_model("conformer block", "conformer")
def conformer() -> ModuleCase:
    block = import_module("conformer").ConformerBlock(dim=32, dim_head=16, heads=2, conv_causal=True)
    return ModuleCase(block, import_torch().randn(1, 40, 32), 25)


@published_model("local-attention layer, an exact window", "local-attention")
def local_layer() -> ModuleCase:
    torch = import_torch()
    attention = import_module("local_attention").LocalAttention(
        window_size=16, dim=16, causal=True, autopad=True, exact_windowsize=True
    )

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.heads = attention, torch.nn.Linear(16, 48)

        def forward(self, x: Any) -> Any:
            return self.attention(*self.heads(x).chunk(3, -1))

    return ModuleCase(Layer(), torch.randn(1, 40, 16), 25)


@published_model("x-transformers decoder, shifted tokens", "x-transformers")
def shifted_tokens() -> ModuleCase:
    return _decoder(rotary_pos_emb=True, shift_tokens=1)


@published_model("x-transformers decoder, ALiBi", "x-transformers")
def slopes() -> ModuleCase:
    return _decoder(alibi_pos_bias=True)


@published_model("x-transformers decoder, T5 bias", "x-transformers")
def buckets() -> ModuleCase:
    return _decoder(rel_pos_bias=True)


def _decoder(**options: Any) -> ModuleCase:
    package, torch = import_module("x_transformers"), import_torch()
    layers = package.Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, **options)
    model = package.ContinuousTransformerWrapper(
        dim_in=16, dim_out=16, max_seq_len=0, use_abs_pos_emb=False, attn_layers=layers
    )
    return ModuleCase(model, torch.randn(1, 40, 16), 25, max_context=100)


@published_model("relative attention in a window, as Shaw writes it", "torch")
def shaw() -> ModuleCase:
    torch = import_torch()
    nn, width, heads, far = torch.nn, 32, 4, 6

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.Linear(width, 3 * width)
            self.vectors = nn.Embedding(2 * far + 1, width // heads)

        def forward(self, x: Any) -> Any:
            frames = x.shape[1]
            q, k, v = (t.view(1, frames, heads, -1).transpose(1, 2) for t in self.heads(x).chunk(3, dim=-1))
            behind = torch.arange(frames)[:, None] - torch.arange(frames)
            near = self.vectors(behind.clamp(-far, far) + far)
            scores = q @ k.transpose(-1, -2) + torch.einsum("bhnd,nrd->bhnr", q, near)
            scores = (scores / math.sqrt(width // heads)).masked_fill((behind < 0) | (behind > 9), -math.inf)
            return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)

    return ModuleCase(Attention(), torch.randn(1, 40, width), 25)


@published_model("linear attention by running sums", "torch")
def linear_attention() -> ModuleCase:
    torch = import_torch()

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = torch.nn.Linear(16, 48)

        def forward(self, x: Any) -> Any:
            q, k, v = self.heads(x).chunk(3, -1)
            q, k = (torch.nn.functional.elu(vectors) + 1 for vectors in (q, k))
            pairs = torch.einsum("btd,bte->btde", k, v).cumsum(1)
            weight = torch.einsum("btd,btd->bt", q, k.cumsum(1))[..., None]
            return torch.einsum("btd,btde->bte", q, pairs) / (weight + 1e-6)

    return ModuleCase(Attention(), torch.randn(1, 40, 16), 25)


@published_model("transformers wav2vec2-conformer attention, a window", "transformers")
def shifted_window() -> ModuleCase:
    hf, torch = import_module("transformers"), import_torch()
    package = import_module("transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer")
    config = hf.Wav2Vec2ConformerConfig(hidden_size=32, num_attention_heads=4, max_source_positions=500)

    class Window(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.positions = package.Wav2Vec2ConformerRelPositionalEmbedding(config)
            self.attention = package.Wav2Vec2ConformerSelfAttention(config)

        def forward(self, x: Any) -> Any:
            steps = torch.arange(x.shape[1])
            behind = steps[:, None] - steps
            hidden = (behind < 0) | (behind > 9)
            mask = torch.zeros(hidden.shape).masked_fill(hidden, torch.finfo(torch.float32).min)
            encodings = self.positions(x)
            return self.attention(x, attention_mask=mask[None, None], relative_position_embeddings=encodings)[
                0
            ]

    return ModuleCase(Window(), torch.randn(1, 40, 32), 25, max_context=400)


@published_model("Transformer-XL attention, 100 frames", "torch")
def transformer_xl() -> ModuleCase:
    torch = import_torch()
    nn, width, heads = torch.nn, 32, 4

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.Linear(width, 3 * width)
            self.positions, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width)
            self.u, self.w = (nn.Parameter(torch.randn(heads, width // heads)) for _ in range(2))
            self.register_buffer("rates", 1e4 ** (-torch.arange(0, width, 2.0) / width))

        def forward(self, x: Any) -> Any:
            frames = x.shape[1]
            angles = torch.outer(torch.arange(frames - 1, -1, -1.0), self.rates)
            encodings = self.positions(torch.cat([angles.sin(), angles.cos()], -1)).view(frames, heads, -1)
            q, k, v = (t.view(1, frames, heads, -1) for t in self.heads(x).chunk(3, -1))
            near = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
            far = self._shift(torch.einsum("bihd,jhd->bhij", q + self.w, encodings))
            steps = torch.arange(frames)
            scores = ((near + far) / math.sqrt(width // heads)).masked_fill(steps > steps[:, None], -math.inf)
            return self.out(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).flatten(2))

        def _shift(self, x: Any) -> Any:
            wide = torch.cat([torch.zeros(*x.shape[:3], 1), x], -1)
            return wide.view(*x.shape[:2], x.shape[3] + 1, x.shape[2])[:, :, 1:].view_as(x)

    return ModuleCase(Attention(), torch.randn(1, 40, width), 25, max_context=100)


@published_model("minGRU by sums in the logarithm", "torch")
def min_gru() -> ModuleCase:
    torch = import_torch()
    functions = torch.nn.functional

    class MinGRU(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(16, 32)

        def forward(self, x: Any) -> Any:
            hidden, gate = self.inner(x).chunk(2, -1)
            kept_share, new = -functions.softplus(gate), -functions.softplus(-gate)
            positive = (functions.relu(hidden) + 0.5).log()
            value = new + torch.where(hidden >= 0, positive, -functions.softplus(-hidden))
            total = kept_share.cumsum(1)
            return (total + (value - total).logcumsumexp(1)).exp()

    return ModuleCase(MinGRU(), torch.randn(1, 40, 16), 25)
