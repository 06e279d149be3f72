"""A function of ``pulse.front`` against its definition, offline and as a stream."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from pulse.models import TypedModel
from pulse.program.compiler import compile_model
from streaming import Session
from tests.agreement import Expected
from tests.backends import BACKENDS

EXACT = 1e-4
"""How far from the definition a value may be, as a share of the largest one."""


def sound(frames: int, seed: int = 0, batch: int = 1) -> Array:
    """Noise whose loudness changes, [batch, frames] f32."""
    rng = np.random.default_rng(seed)
    swell = 0.3 + 0.25 * np.sin(np.arange(frames) / 500)
    return (rng.standard_normal((batch, frames)) * swell).astype(np.float32)


def assert_refused(call: Callable[[], object], message: str) -> None:
    """The call raises an InputError of one line with the message in it."""
    with pytest.raises(InputError) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def assert_near(output: Array, expected: Array, share: float = EXACT) -> None:
    """Equal shapes, and values as near as ``EXACT`` says."""
    assert output.shape == expected.shape, (output.shape, expected.shape)
    off = np.abs(output - expected).max(initial=0)
    assert off <= share * np.abs(expected).max(initial=0) + 1e-8, off


def offline(model: TypedModel, feeds: Mapping[str, Array] | Array) -> Array:
    """Run a model; return its only output."""
    (result,) = model.run(feeds).values()
    return result


def assert_streams_agree(
    model: TypedModel,
    feeds: Mapping[str, Array] | Array | list[Array],
    pulses: Sequence[int] = (1, 3),
    backends: Sequence[str] = BACKENDS,
) -> dict[str, int]:
    """Require that streams of uneven blocks equal the offline model; the outputs' delays at the smallest pulse.

    feeds     of one stream, or the input of several
    pulses    multiples of the smallest pulse
    backends  the first one is tried at all of them, others at the last
    """
    several = feeds if isinstance(feeds, list) else [feeds]
    feeds_of_streams = [
        stream_feeds if isinstance(stream_feeds, Mapping) else {next(iter(model.inputs)): stream_feeds}
        for stream_feeds in several
    ]
    expected = [Expected(model, stream_feeds) for stream_feeds in feeds_of_streams]
    simplified = model.declutter()
    smallest = simplified.pulsify()
    for times in pulses:
        pulsed = smallest if times == 1 else simplified.pulsify(pulse=smallest.pulse * times)
        for backend in backends if times == pulses[-1] else backends[:1]:
            program = compile_model(pulsed, backend)
            for stream_feeds, reference in zip(feeds_of_streams, expected):
                reference.assert_agrees(_in_blocks(Session(program), stream_feeds), (times, backend))
    return {port.name: port.delay for port in smallest.outputs}


def _in_blocks(session: Session, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Everything, in blocks of uneven sizes."""
    rng = np.random.default_rng(1)
    axes = {port.name: port.axis or 0 for port in session.program.inputs}
    max_frames = max(array.shape[axes[name]] for name, array in feeds.items())
    pieces: list[dict[str, Array]] = []
    starts = dict.fromkeys(feeds, 0)
    while any(starts[name] < array.shape[axes[name]] for name, array in feeds.items()):
        block: dict[str, Array] = {}
        for name, array in feeds.items():
            size = int(rng.integers(0, max(2, max_frames // 7)))
            block[name] = np.take(
                array, range(starts[name], min(starts[name] + size, array.shape[axes[name]])), axes[name]
            )
            starts[name] += block[name].shape[axes[name]]
        pieces.append(session.push(block))
    pieces.append(session.flush())
    return {
        port.name: np.concatenate([piece[port.name] for piece in pieces], port.axis or 0)
        for port in session.program.outputs
    }
