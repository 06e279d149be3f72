"""Models of chunks whose calls take and return one frame of overlapping samples."""

from collections.abc import Mapping

from pulse.loading.loaded_model import LoadedModel
from pulse.recipes.guessing import Guess, guess_frames
from pulse.support.record import record


@record
class FramedModel:
    """A model whose call is one frame.

    axes   its axes of frames, by the names of its input and its output
    guess  the stages around it
    """

    axes: Mapping[str, int]
    guess: Guess


def frame_model(opened: LoadedModel, hop: int) -> FramedModel | None:
    """Return a model with one input and one output of equal size after an axis of size 1, which becomes the frame axis.

    None if it is not such a model.

    hop  samples from one frame to the next
    """
    chunks, call = opened.chunks, opened.resolution.call
    if chunks is None or call is None or len(chunks.inputs) != 1 or len(chunks.outputs) != 1:
        return None
    (input_port,), (output_port,) = chunks.inputs, chunks.outputs
    if (
        input_port.frames != output_port.frames
        or input_port.frames <= hop
        or input_port.axis is None
        or output_port.axis is None
    ):
        return None
    shapes = call.inputs[input_port.name].shape, call.outputs[output_port.name].shape
    axes = input_port.axis - 1, output_port.axis - 1
    if any(axis < 0 or shape[axis] != 1 for axis, shape in zip(axes, shapes, strict=True)):
        return None
    stages = guess_frames(input_port.frames, True, hop)
    front = [*stages.front, *(["squeeze = { axis = 0 }"] if axes[0] == 0 else [])]
    back = [*(["unsqueeze = { axis = 0 }"] if axes[1] == 0 else []), *stages.back]
    guess = Guess(front, back, notes=stages.notes, kind=stages.kind, samples=stages.samples)
    return FramedModel({input_port.name: axes[0], output_port.name: axes[1]}, guess)
