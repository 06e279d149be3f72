"""Caches of torchaudio's Emformer at their full size; the author slices off what is not filled yet."""

import contextlib
import sys
from collections.abc import Generator
from functools import partial
from typing import Any

from pulse.errors import LoadError
from pulse.torch.replacements.attributes import replace_attributes

_FILE, _LAYER, _METHOD = "torchaudio.models.emformer", "_EmformerLayer", "_apply_attention_infer"


@contextlib.contextmanager
def use_whole_caches(torch: Any, module: Any) -> Generator[None]:
    """Within this context, the layers of an Emformer attend to their whole caches, and masks hide what is not filled.

    ``Emformer.infer`` cuts its caches to the number of past frames, the value of a tensor: no size of an export.
    torchaudio is not imported.
    """
    layer_class: Any = getattr(sys.modules.get(_FILE), _LAYER, None)
    layers: list[Any] = (
        []
        if layer_class is None
        else [submodule for submodule in module.modules() if isinstance(submodule, layer_class)]
    )
    with contextlib.ExitStack() as stack:
        for layer in layers:
            stack.enter_context(replace_attributes(layer, **{_METHOD: partial(_attend, torch, layer)}))
        yield


def _attend(
    torch: Any,
    layer: Any,
    utterance: Any,
    lengths: Any,
    right_context: Any,
    mems: Any,
    state: list[Any] | None,
) -> tuple[Any, Any, list[Any]]:
    """Return the result of the layer's attention in ``infer`` (Shi et al., "Emformer", 2021).

    utterance      frames [U, B, D]
    lengths        [B] valid frames; all of them
    right_context  frames [R, B, D]
    mems           the vector of this chunk for the memory [1, B, D]; anything if the layer has no memory
    state          memory [M, B, D], keys and values of past frames [L, B, D], number of past frames [1, B];
                   the newest ones come last
    Returns        frames [R + U, B, D], the chunk's vector for the next layer, and the next state
    Raises         LoadError: ``lengths`` is not the length of the chunk
    """
    attention, frames, batch = layer.attention, utterance.shape[0], utterance.shape[1]
    if not _is_number(lengths.max().item(), frames):
        raise LoadError(
            "lengths must be the length of the chunk (segment and right context): give the example chunks without "
            "padding"
        )
    memory, keys, values, past = layer._init_state(batch, utterance.device) if state is None else state
    summary = layer.memory_op(utterance.permute(1, 2, 0)).permute(2, 0, 1)[:1] if layer.use_mem else mems[:0]
    query = attention.emb_to_query(_join(torch, right_context, utterance, summary))
    key, value = attention.emb_to_key_value(_join(torch, memory, right_context, utterance)).chunk(2, 2)
    context_frames = memory.shape[0] + right_context.shape[0]
    all_keys = _join(torch, key[:context_frames], keys, key[context_frames:])
    all_values = _join(torch, value[:context_frames], values, value[context_frames:])

    def heads(x: Any) -> Any:
        return x.reshape(x.shape[0], batch * attention.num_heads, -1).transpose(0, 1)

    scores = torch.bmm(heads(query) * attention.scaling, heads(all_keys).transpose(1, 2))
    hidden = _hidden_keys(torch, layer, past[0, 0], right_context.shape[0], frames)
    scores = scores.masked_fill(hidden, -torch.inf)
    if layer.use_mem:
        is_summary = torch.arange(query.shape[0])[:, None] == query.shape[0] - 1
        is_memory = torch.arange(all_keys.shape[0]) < memory.shape[0]
        scores = scores.masked_fill(is_summary & is_memory, attention.negative_inf)
    mixed = torch.bmm(torch.softmax(scores, -1), heads(all_values))
    y = attention.out_proj(mixed.transpose(0, 1).reshape(query.shape[0], batch, -1))
    rows = right_context.shape[0] + frames
    limit = torch.tanh if attention.tanh_on_mem else partial(torch.clamp, min=-10, max=10)
    next_state = [
        _newest(torch, memory, mems),
        _newest_frames(torch, keys, key[context_frames:], past[0, 0]),
        _newest_frames(torch, values, value[context_frames:], past[0, 0]),
        past + frames,
    ]
    return y[:rows], limit(y[rows:]) if layer.use_mem else mems, next_state


def _is_number(value: Any, number: int) -> bool:
    """Return whether a value is known to be this number; an exporter's unknown sizes are not."""
    return isinstance(value, int) and value == number


def _hidden_keys(torch: Any, layer: Any, past: Any, ahead: int, frames: int) -> Any:
    """Return the entries of memory and cache that ``past`` frames have not filled: [keys]."""
    chunks_since = torch.arange(layer.max_memory_size - 1, -1, -1) * layer.segment_length
    frames_since = torch.arange(layer.left_context_length - 1, -1, -1)
    never = torch.full((ahead,), -1), torch.full((frames,), -1)
    return torch.cat([chunks_since, never[0], frames_since, never[1]]) >= past


def _join(torch: Any, *parts: Any) -> Any:
    """Join all parts that have frames."""
    return torch.cat([part for part in parts if part.shape[0]])


def _newest(torch: Any, cache: Any, new: Any) -> Any:
    """Return the cache with new frames at its end, at its own size."""
    size = cache.shape[0]
    return torch.cat([cache, new])[-size:] if size else cache


def _newest_frames(torch: Any, cache: Any, new: Any, past: Any) -> Any:
    """Return the cache with new frames at its end, as the author leaves it.

    The module repeats older rows where no row is filled in yet. They are always hidden, but the states are compared.
    """
    size, frames = cache.shape[0], new.shape[0]
    if size <= 2 * frames:
        return _newest(torch, cache, new)
    age = torch.arange(size - 1, -1, -1)
    before = past.to(torch.int64).clamp(max=size)
    index = size + frames - 1 - age
    return torch.cat([cache, new]).index_select(0, torch.where(age >= before + frames, index + before, index))
