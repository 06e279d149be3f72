"""GTCRN (Rong et al., ICASSP 2024), a speech enhancer, written by hand with pulse.build: one function for each block.

Spectra [1, 257, T, 2] in and out. Without a file the weights are random numbers; with the author's offline ONNX file
they are those of the file, and the result is compared with it. Either way the model is streamed and checked.
"""

import argparse
from typing import Any

import numpy as np

import pulse
from pulse.build import (
    FC,
    GRU,
    Add,
    Concat,
    Connector,
    Conv2D,
    ConvTranspose2D,
    GenericOperator,
    LayerNorm,
    Mul,
    Node,
    Pad,
    PReLU,
    Producer,
    ReduceMean,
    Reshape,
    Sigmoid,
    Split,
    Squeeze,
    Sub,
    Tanh,
    Transpose,
    Unsqueeze,
)

BANDS = 33  # bands of frequency after the encoder


class Weights:
    """The constants that each node of a file reads, by the node's name; none without a file."""

    def __init__(self, path: str | None) -> None:
        graph = None if path is None else pulse.load(path).analyse().declutter().graph
        nodes = () if graph is None else graph.nodes
        self.by_node = {
            node.name: [fact.value for fact in graph.input_facts(node) if fact.value is not None]
            for node in nodes
            if graph is not None
        }

    def __call__(self, name: str, index: int = 0) -> np.ndarray | None:
        return self.by_node[name][index] if self.by_node else None

    def slope(self, name: str, channels: int) -> np.ndarray | None:
        value = self(name)
        return None if value is None else np.broadcast_to(value.ravel(), channels)

    def gru(self, names: list[str]) -> dict[str, Any]:
        """Return the parameters of a layer, one name for each direction."""
        parts = ("weight", "recurrence", "bias")
        weights = self.by_node
        return (
            {part: np.stack([weights[n][k] for n in names]) for k, part in enumerate(parts)}
            if weights
            else {}
        )


def convolution(w: Weights, name: str, channels: tuple[int, int], transposed: bool, **sizes) -> Node:
    """Return a convolution, with the normalisation after it folded into it."""
    kind = ConvTranspose2D if transposed else Conv2D
    return kind(*channels, weight=w(name), bias=w(name, 1), **sizes)


def edge_block(w: Weights, prefix: str, channels: tuple[int, int], groups: int, transposed: bool):
    """Halve or double the bands: a convolution over frequency, and an activation."""
    sizes = {"kernel_dims": [1, 5], "stride_dims": [1, 2], "padding_dims": [0, 2], "groups": groups}
    name = "bn/BatchNormalization_output_0" if transposed else "conv/Conv_output_0"
    conv = convolution(w, f"{prefix}/{name}", channels, transposed, **sizes)
    last = channels[1] == 2
    act = Tanh() if last else PReLU(16, 4, slope=w.slope(f"{prefix}/act/PRelu_output_0", 16))
    return lambda x: act(conv(x))


def neighbours(channels: int):
    """Put each band next to its neighbours: three channels for each one."""
    taps = np.tile(np.eye(3, dtype=np.float32)[:, None, None], (channels, 1, 1, 1))
    return Conv2D(
        channels, 3 * channels, [1, 3], padding_dims=[0, 1], groups=channels, weight=taps, no_bias=True
    )


def attention(w: Weights, prefix: str, x: Connector) -> Connector:
    """Return weights for channels, from the energy of each frame."""
    energy = Transpose([0, 2, 1])(ReduceMean([3], keepdims=False)(Mul()(x, x)))
    hidden = GRU(8, 16, batch_first=True, **w.gru([f"{prefix}/att_gru/GRU_output_0.forward"]))(energy)
    fc = f"{prefix}/att_fc"
    weights = FC(16, 8, weight=w(f"{fc}/MatMul_output_0"), bias=w(f"{fc}/Add_output_0"))(Squeeze([2])(hidden))
    return Mul()(x, Unsqueeze([3])(Transpose([0, 2, 1])(Sigmoid()(weights))))


def temporal_block(w: Weights, prefix: str, dilation: int, transposed: bool):
    """Pass half of the channels through a dilated causal convolution over time, then interleave both halves."""
    ends = ("bn1", "bn", "bn2") if transposed else ("conv1", "conv", "conv2")
    kind = "BatchNormalization" if transposed else "Conv"
    first, depth, second = (
        f"{prefix}/{part}_{end}/{kind}_output_0" for part, end in zip(("point", "depth", "point"), ends)
    )
    ahead = 2 * dilation if transposed else 0  # a transposed convolution cuts these frames off at the end

    def block(x: Connector) -> Connector:
        through, past = Split([8, 8], 1)(x)
        h = convolution(w, first, (24, 16), transposed, kernel_dims=1)(neighbours(8)(through))
        h = PReLU(16, 4, slope=w.slope(f"{prefix}/point_act/PRelu_output_0", 16))(h)
        h = Pad([2 * dilation, 0], [2])(h)
        sizes = {"kernel_dims": 3, "dilation_dims": [dilation, 1], "padding_dims": [ahead, 1], "groups": 16}
        h = convolution(w, depth, (16, 16), transposed, **sizes)(h)
        h = PReLU(16, 4, slope=w.slope(f"{prefix}/depth_act/PRelu_output_0", 16))(h)
        h = attention(w, f"{prefix}/tra", convolution(w, second, (16, 8), transposed, kernel_dims=1)(h))
        turns = Concat(2, 2)(Unsqueeze([2])(h), Unsqueeze([2])(past))
        return Reshape([0, 16, -1, BANDS])(turns)

    return block


def grouped_gru(w: Weights, prefix: str, x: Connector, both: bool) -> Connector:
    """Return two layers, each for half of the features [N, frames, 16]."""
    ways, hidden = (["forward", "reverse"], 4) if both else (["forward"], 8)
    parts = []
    for number, half in enumerate(Split([8, 8], 2)(x), 1):
        weights = w.gru([f"{prefix}/rnn{number}/GRU_output_0.{way}" for way in ways])
        layer = GRU(8, hidden, batch_first=True, direction="bidirectional" if both else "forward", **weights)
        parts.append(Reshape([0, 0, -1])(layer(half)))
    return Concat(2, 2)(*parts)


def dual_path(w: Weights, prefix: str, x: Connector) -> Connector:
    """Add recurrent layers over the bands of each frame, then over the frames of each band; x [1, T, 33, 16]."""

    def finish(path: str, y: Connector, shape: list[int]) -> Connector:
        fc = f"{prefix}/{path}_fc"
        y = FC(16, 16, weight=w(f"{fc}/MatMul_output_0"), bias=w(f"{fc}/Add_output_0"))(y)
        return Reshape(shape)(y)

    def normalise(path: str, y: Connector) -> Connector:
        name = f"{prefix}/{path}_ln/LayerNormalization_output_0"
        return LayerNorm([BANDS, 16], 1e-8, scale=w(name), shift=w(name, 1))(y)

    across_bands = grouped_gru(w, f"{prefix}/intra_rnn", Reshape([-1, BANDS, 16])(x), both=True)
    x = Add()(x, normalise("intra", finish("intra", across_bands, [1, -1, BANDS, 16])))
    turn = [0, 2, 1, 3]
    frames = grouped_gru(w, f"{prefix}/inter_rnn", Reshape([BANDS, -1, 16])(Transpose(turn)(x)), both=False)
    return Add()(x, normalise("inter", Transpose(turn)(finish("inter", frames, [1, BANDS, -1, 16]))))


def bands(name: str, w: Weights, x: Connector, high: tuple[int, int]) -> Connector:
    """Return the upper frequencies in wider bands, or back; the lower 65 stay."""
    below, above = Split([65, high[0]], 3)(x)
    return Concat(2, 3)(below, FC(*high, no_bias=True, weight=w(name))(above))


def gtcrn(w: Weights) -> pulse.models.Model:
    """Return the whole model: features, encoder, two dual paths, decoder with the encoder's outputs, mask."""
    mix = Connector("mix", "1,257,T,2")
    real, imag = Split([1, 1], 1)(Transpose([0, 3, 2, 1])(mix))
    power = Add()(Add()(Mul()(real, real), Mul()(imag, imag)), constant(1e-12))
    features = Concat(3, 1)(GenericOperator("Sqrt")(power), real, imag)
    x = neighbours(3)(bands("/erb_fc/MatMul_output_0", w, features, (192, 64)))
    encoder = [edge_block(w, "/encoder/en_convs.0", (9, 16), 1, False)]
    encoder += [edge_block(w, "/encoder/en_convs.1", (16, 16), 2, False)]
    encoder += [temporal_block(w, f"/encoder/en_convs.{2 + n}", d, False) for n, d in enumerate((1, 2, 5))]
    skips = []
    for block in encoder:
        x = block(x)
        skips.append(x)
    x = Transpose([0, 2, 3, 1])(x)
    x = dual_path(w, "/dpgrnn2", dual_path(w, "/dpgrnn1", x))
    x = Transpose([0, 3, 1, 2])(x)
    decoder = [temporal_block(w, f"/decoder/de_convs.{n}", d, True) for n, d in enumerate((5, 2, 1))]
    decoder += [edge_block(w, "/decoder/de_convs.3", (16, 16), 2, True)]
    decoder += [edge_block(w, "/decoder/de_convs.4", (16, 2), 1, True)]
    for block, skip in zip(decoder, reversed(skips)):
        x = block(Add()(x, skip))
    gain_real, gain_imag = Split([1, 1], 1)(bands("/ierb_fc/MatMul_output_0", w, x, (64, 192)))
    out_real = Sub()(Mul()(real, gain_real), Mul()(imag, gain_imag))
    out_imag = Add()(Mul()(imag, gain_real), Mul()(real, gain_imag))
    out = Transpose([0, 3, 2, 1], "enh")(Concat(2, 1)(out_real, out_imag))
    return out.graph().graph(title="gtcrn")


def constant(number: float) -> Connector:
    """Return a number as a wire."""
    return Producer(number)()


def main() -> None:
    """Build the model, compare it with the file, stream it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", help="gtcrn_offline.onnx, for its weights")
    parser.add_argument("--pulse", type=int, default=1, help="frames for each step")
    arguments = parser.parse_args()
    model = gtcrn(Weights(arguments.file)).analyse()
    report = pulse.cost_report(model)
    print(f"{len(model.graph.nodes)} nodes, {report.parameters} parameters")
    rng = np.random.default_rng(0)
    sound = rng.standard_normal((1, 257, 40, 2)).astype(np.float32)
    (result,) = model.run({"mix": sound}).values()
    if arguments.file:
        (expected,) = pulse.load(arguments.file).analyse().run({"mix": sound}).values()
        print(f"largest difference to {arguments.file}: {np.abs(result - expected).max():.1e}")
    proof = pulse.verify(model, pulse=arguments.pulse)
    print(f"streamed equals offline at lengths {', '.join(map(str, proof.lengths))}: {proof.equal}")


if __name__ == "__main__":
    main()
