"""Make an ordinary offline ONNX model, let it be pulsed, and see what its delay is made of.

Two convolutions over time: the first looks ahead, the second only back. Try --ahead 0, or a pulse that does not suit.
"""

import argparse

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import pulse


def model(ahead: int, stride: int) -> bytes:
    """Return a model: a Conv of 5 taps, ``ahead`` of them in the future, Relu, a causal strided Conv of 3 taps."""
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((8, 1, 5)).astype(np.float32),
        "w2": rng.standard_normal((1, 8, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["audio", "w1"], ["h"], name="look_ahead", pads=[4 - ahead, ahead]),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "w2"], ["y"], name="look_back", pads=[2, 0], strides=[stride]),
    ]
    audio = helper.make_tensor_value_info("audio", TensorProto.FLOAT, [1, 1, "T"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "two_convolutions", [audio], [y], constants)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()


def main() -> None:
    """Convert the model to pulse form, print and prove it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ahead", type=int, default=2, choices=range(5), help="taps in the future")
    parser.add_argument("--stride", type=int, default=2)
    parser.add_argument("--pulse", type=int, help="frames for each step; the smallest possible by default")
    arguments = parser.parse_args()
    try:
        typed = pulse.load(model(arguments.ahead, arguments.stride)).analyse()
        pulsed = typed.declutter().pulsify(pulse=arguments.pulse)
        report = pulse.verify(typed, pulse=pulsed.pulse)
    except pulse.PulseError as error:
        raise SystemExit(f"error: {error}") from error
    field = pulsed.receptive_fields["y"]
    print(f"pulse {pulsed.pulse}: {pulsed.outputs[0]}")
    print(f"an output frame sees {field.frames} samples, {field.ahead} of them ahead")
    for name, op, size in pulsed.buffers():
        print(f"buffer {name}: {op.detail()}, {size} bytes")
    print(f"streamed equals offline at lengths {', '.join(map(str, report.lengths))}: {report.equal}")


if __name__ == "__main__":
    main()
