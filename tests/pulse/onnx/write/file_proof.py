"""The common check of writers: the file gives the offline result in onnxruntime, and when it is read back."""

from collections.abc import Mapping, Sequence

from onnx import ModelProto

import pulse
from pulse.errors import InputError
from pulse.facts import Array
from pulse.metadata import StreamMetadata
from pulse.models import PulsedModel, TypedModel
from pulse.onnx.write.model import to_onnx
from pulse.program.whole_stream import stream_whole
from pulse.proof.trial_signals import draw_feeds
from pulse.runtimes.onnx_runtimes import RuntimeProgram
from tests.agreement import Expected
from tests.backends import BACKENDS


def read_metadata(proto: ModelProto) -> StreamMetadata:
    """The metadata of a file about its stream."""
    metadata = StreamMetadata.parse({entry.key: entry.value for entry in proto.metadata_props})
    assert metadata is not None
    return metadata


def kinds(proto: ModelProto) -> list[str]:
    """The operators of a file, in order."""
    return [node.op_type for node in proto.graph.node]


def reopen(proto: ModelProto) -> PulsedModel:
    """The stream that a file speaks of."""
    return pulse.load(proto).analyse().declutter().pulsify()


def assert_file_streams(
    typed: TypedModel,
    model: PulsedModel,
    lengths: Sequence[int] = (1, 2, 5, 9, 16),
    opset: int = 17,
    backends: Sequence[str] = BACKENDS,
    feeds: Mapping[str, Array] | None = None,
) -> ModelProto:
    """The file, if its streams of these lengths equal the offline outputs, flush included.

    backends   of the stream that is read back
    feeds      inputs that are not random
    """
    proto = to_onnx(model, opset)
    back = reopen(proto)
    programs = [RuntimeProgram(model, proto), *(back.compile(backend) for backend in backends)]
    ran = 0
    for length in lengths:
        values = {**draw_feeds(model, length, seed=(7, length)), **(feeds or {})}
        try:
            expected = Expected(typed, values)
        except InputError:
            continue
        ran += 1
        for program in programs:
            expected.assert_agrees(stream_whole(program, values), f"{length} frames, {program.backend}")
    assert ran
    return proto


def assert_model_streams(
    source: ModelProto, frames: int, lengths: Sequence[int] = (1, 2, 5, 9, 16), opset: int = 17
) -> ModelProto:
    """The same for a model as it was read, in pulses of this many frames."""
    typed = pulse.load(source).analyse()
    return assert_file_streams(typed, typed.declutter().pulsify(pulse=frames), lengths, opset)
