"""Spectrograms and cepstra of TensorFlow's audio operators."""

from pulse.errors import InputError
from pulse.graph import OutletId
from pulse.ops.shape import Transpose
from pulse.substitution import Terms
from pulse.support.wording import spell
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op
from pulse.typed import TypedNetwork


def _graft(node: TensorflowNode, model: TypedNetwork, x: OutletId) -> OutletId:
    """Return a front of one input and one output, wired after x."""
    values = {
        next(iter(dim.symbols)): size
        for dim, size in zip(next(iter(model.inputs.values())).shape, node.graph.fact(x).shape)
        if dim.symbols
    }
    terms = Terms(node.scope, values)
    terms.assume(model.scope)
    outlets = terms.graft(model, node.graph, {model.graph.inputs[0]: x}, f"{node.wire_name}.")
    return node.name_result(outlets[model.graph.outputs[0]])


@tensorflow_op("AudioSpectrogram")
def spectrogram(node: TensorflowNode) -> OutletId:
    """Wire the spectrogram of [samples, channels]: [channels, frames, frequencies]."""
    from pulse.front.tensorflow import tf_spectrogram

    x = node.fact(0)
    node.require(x.rank == 2 and x.shape[1].is_const, f"it needs [samples, channels], got {x}")
    try:
        model = tf_spectrogram(
            node.integer("window_size"),
            node.integer("stride"),
            magnitude_squared=node.flag("magnitude_squared"),
            shape=f"{int(x.shape[1])},T",
        )
    except InputError as error:
        raise node.error(str(error)) from error
    return _graft(node, model, node.wire(Transpose((1, 0)), [node.input(0)], "channels"))


@tensorflow_op("Mfcc")
def mfcc(node: TensorflowNode) -> OutletId:
    """Wire the cepstrum of powers [channels, frames, frequencies]; the rate, an input, must be known."""
    from pulse.front.tensorflow import tf_mfcc

    x = node.fact(0)
    if node.value(1) is None:
        name = node.graph.label(node.input(1))
        raise node.error(
            f"its sample rate {name} must be known; give it, as in {spell('constants', {name: 16000})}"
        )
    if x.rank != 3 or not x.shape[0].is_const or not x.shape[2].is_const:
        raise node.error(f"it needs [channels, frames, frequencies], got {x}")
    try:
        model = tf_mfcc(
            node.integer_at(1, "sample rate"),
            node.real("upper_frequency_limit", 4000.0),
            lower_frequency_limit=node.real("lower_frequency_limit", 20.0),
            filterbank_channel_count=node.integer("filterbank_channel_count", 40),
            dct_coefficient_count=node.integer("dct_coefficient_count", 13),
            shape=f"{int(x.shape[0])},frames,{int(x.shape[2])}",
        )
    except InputError as error:
        raise node.error(str(error)) from error
    return _graft(node, model, node.input(0))
