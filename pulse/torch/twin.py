"""The comparison of a module with its author's own streaming mode."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from pulse.errors import DivergenceError
from pulse.facts import Array
from pulse.loading.loaded_model import LoadedModel
from pulse.models import PulsedModel
from pulse.proof.tolerance import ExpectedOutputs
from pulse.support.wording import count_of
from pulse.torch.arguments import tensor_leaves
from pulse.torch.module import to_array
from pulse.torch.module_original import ModuleOriginal

Twin: TypeAlias = Callable[..., Any]
"""An author's own streaming mode: takes a pulse of each input, returns the ready frames of each output."""

TWIN_PULSES = 8
"""The number of pulses given to a twin."""


def require_twin(model: LoadedModel, pulsed: PulsedModel, twin: Twin, seed: int) -> None:
    """Compare the twin with the module of a model. Raises DivergenceError: they differ.

    twin     its frames, joined, must be the first ones that the module returns for the whole input
    """
    original = model.original
    assert isinstance(original, ModuleOriginal)
    torch, title = original.torch, original.name
    feeds = original.draw(pulsed, TWIN_PULSES * pulsed.pulse, seed)
    with torch.no_grad():
        frames = [
            [to_array(torch, leaf) for leaf in tensor_leaves(torch, twin(*tensors))]
            for tensors in _pulses(torch, feeds, pulsed)
        ]
    reference = ExpectedOutputs.of(pulsed.typed, feeds, seed)
    if any(len(frame) != len(pulsed.outputs) for frame in frames):
        raise DivergenceError(
            f"{title}: the twin returns {count_of(len(frames[0]), 'output')} for a pulse, the model "
            f"{len(pulsed.outputs)}"
        )
    for index, port in enumerate(pulsed.outputs):
        joined = np.concatenate([outputs[index] for outputs in frames], port.axis or 0)
        expected = reference.native[port.name]
        axis = port.axis or 0
        frames_of_twin = joined.shape[axis] if joined.ndim == expected.ndim else 0
        joined_part = (*(slice(None),) * axis, slice(0, frames_of_twin))
        if not frames_of_twin or expected[joined_part].shape != joined.shape:
            raise DivergenceError(
                f"{title}, output {port.name}: the twin's frames have shape {list(joined.shape)}, the module's for "
                f"the whole input {list(expected.shape)}"
            )
        joint = expected.copy()
        joint[joined_part] = joined
        wrong = reference.judge(port.name, joint, port.axis).wrong
        if wrong is not None:
            first = min(map(tuple, np.argwhere(wrong)), key=lambda location: location[port.axis or 0])
            raise DivergenceError(
                f"{title}, output {port.name}: the twin differs from the module at {list(map(int, first))}: "
                f"{float(joint[first]):.6g}, not {float(expected[first]):.6g}; a twin begins with a new stream, "
                "without frames that come before the result"
            )


def _pulses(torch: Any, feeds: dict[str, Array], pulsed: PulsedModel) -> list[list[Any]]:
    """Return the tensors of each pulse, in the order of the inputs."""
    split = [
        [feeds[port.name]] * TWIN_PULSES
        if port.axis is None
        else np.split(feeds[port.name], TWIN_PULSES, port.axis)
        for port in pulsed.inputs
    ]
    return [[torch.from_numpy(np.ascontiguousarray(part)) for part in pulse] for pulse in zip(*split)]
