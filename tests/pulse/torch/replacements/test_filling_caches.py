"""torchaudio's Emformer, chunk by chunk, whose caches fill while the stream begins."""

from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError
from pulse.facts import Array
from pulse.program.whole_stream import stream_whole
from tests.pulse.torch.exporter import torch

emformer: Any = pytest.importorskip("torchaudio.models.emformer", reason="pip install torchaudio")

SEGMENT, CHUNKS = 4, 12

pytestmark = pytest.mark.filterwarnings("ignore:.*(lengths is the length of input|one chunk in each call)")


def module_of(left: int, right: int, memory: int) -> Any:
    """An Emformer of two layers with 8 features."""
    torch.manual_seed(0)
    return emformer.Emformer(
        8, 2, 8, 2, SEGMENT, left_context_length=left, right_context_length=right, max_memory_size=memory
    ).eval()


def first_states(module: Any, batch: int) -> list[list[Any]]:
    """The states of a new stream: zeros."""
    frames = SEGMENT + module.right_context_length
    with torch.no_grad():
        _, _, states = module.infer(torch.zeros(batch, frames, 8), torch.full((batch,), frames), None)
    return [[torch.zeros_like(cache) for cache in layer] for layer in states]


def export(module: Any, batch: int, states: Any) -> Any:
    frames = SEGMENT + module.right_context_length
    example = {
        "input": torch.randn(batch, frames, 8),
        "lengths": torch.full((batch,), frames),
        "states": states,
    }
    return pulse.from_torch(module, example, method="infer", dynamic={})


def call_in_chunks(module: Any, x: Any) -> Array:
    """The author's calls: the stream follows zeros as long as the right context."""
    right = module.right_context_length
    x = torch.cat([x.new_zeros(x.shape[0], right, 8), x], 1)
    states: Any = None
    frames: list[Any] = []
    with torch.no_grad():
        for begin in range(0, CHUNKS * SEGMENT, SEGMENT):
            chunk = x[:, begin : begin + SEGMENT + right]
            y, _, states = module.infer(chunk, torch.full((x.shape[0],), SEGMENT + right), states)
            frames.append(y)
    return np.asarray(torch.cat(frames, 1))


@pytest.mark.parametrize(
    ("left", "right", "memory", "batch"), [(6, 1, 0, 1), (10, 2, 3, 1), (0, 0, 2, 2)], ids=str
)
def test_streams_as_the_author_calls_it(left: int, right: int, memory: int, batch: int) -> None:
    """Frames are compared from the first call, while caches fill, and when old frames and vectors leave them."""
    module = module_of(left, right, memory)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    attributes = [set(vars(layer)) for layer in module.emformer_layers]
    states = first_states(module, batch)
    model = export(module, batch, states)
    assert [set(vars(layer)) for layer in module.emformer_layers] == attributes
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert len(model.variables) == 2 * 4
    context = {"input": right} if right else {}
    program = pulse.stream(pulse.load(model, chunking=pulse.Chunking(axes={"input": 1}, context=context)))
    x = torch.randn(batch, CHUNKS * SEGMENT, 8)
    (output,) = stream_whole(program, {"input": x.numpy()}, 0.0).values()
    np.testing.assert_allclose(output, call_in_chunks(module, x), 1e-5, 1e-6)


def test_a_stream_continues_from_the_states_of_the_example() -> None:
    """Half filled caches of the author's own calls."""
    module = module_of(10, 0, 3)
    x = torch.randn(1, CHUNKS * SEGMENT, 8)
    with torch.no_grad():
        _, _, states = module.infer(x[:, :SEGMENT], torch.tensor([SEGMENT]), None)
    program = pulse.stream(pulse.load(export(module, 1, states), chunking=pulse.Chunking(axes={"input": 1})))
    (output,) = stream_whole(program, {"input": x[:, SEGMENT:].numpy()}, 0.0).values()
    np.testing.assert_allclose(output, call_in_chunks(module, x)[:, SEGMENT:], 1e-5, 1e-6)


def test_chunks_with_padding_are_refused() -> None:
    """Their frames would move within the caches."""
    module = module_of(6, 1, 0)
    states = first_states(module, 1)
    example = {"input": torch.randn(1, SEGMENT + 1, 8), "lengths": torch.tensor([3]), "states": states}
    with pytest.raises(LoadError, match="lengths must be the length of the chunk"):
        pulse.from_torch(module, example, method="infer", dynamic={})
