"""Attention with limited reach, streamed: equal to onnxruntime offline, at the minimum delay, or refused."""

from fractions import Fraction

import numpy as np
import pytest
from onnx import ModelProto
from onnx.numpy_helper import from_array

import pulse
from pulse.errors import PulsifyError
from pulse.ops.attention import BandedAttention, BandedAttentionStream
from pulse.program.compiler import compile_model
from pulse.pulsify.bands.attention import band_attention
from tests.noise import next_noise
from tests.pulse.cases.attention import (
    HEADS,
    MASKS,
    WIDTH,
    AttentionBuilder,
    Mask,
    add_mask,
    block,
    chunks,
    convolved_keys,
    flat_heads,
    heads,
    onnx_attention,
    self_attention,
    trilu,
    window,
)
from tests.pulse.cases.build import Feeds, floats, node
from tests.pulse.pulsify.bands.attention_checks import (
    assert_streams_agree,
    attention_example,
    band_of,
    cut_to_frames,
    load_decluttered,
    subsampled_attention,
)


@pytest.mark.parametrize("name", MASKS)
def test_masks_are_recognised(name: str) -> None:
    """The table that is found, the delay, and every frame."""
    mask, back, ahead, period = MASKS[name]
    proto, feeds = attention_example(mask)
    op = band_of(proto)
    assert (op.back, op.ahead, op.period) == (back, ahead, period)
    assert op.bias.shape[:-2] == ((1, 2) if name in ("slopes", "columns") else ())
    model = assert_streams_agree(proto, feeds, 1, pulses=(1, 4, 7))
    assert model.outputs[0].delay == ahead


def test_a_band_has_one_scale_and_a_table_of_biases() -> None:
    """Scales before and after the mask are multiplied; masked entries are -inf."""
    op = band_of(attention_example(MASKS["filled"][0])[0])
    assert op.scale == pytest.approx(4**-0.5 / 1.5)
    assert op.bias.tolist() == [[0.0] * 5]
    op = band_of(attention_example(MASKS["chunks"][0])[0])
    low = -np.inf
    assert op.bias.tolist() == [
        [low, low, *[0.0] * 9],
        [low, *[0.0] * 9, low],
        [*[0.0] * 9, low, low],
    ]
    op = band_of(attention_example(MASKS["columns"][0])[0])
    np.testing.assert_allclose(op.bias[0, :, 0], [np.arange(-5, 1) * 0.5, np.arange(-5, 1) * 0.25])


def test_a_long_window_is_found() -> None:
    """Beyond the lengths that are tried first."""
    op = band_of(attention_example(window(700, 0))[0])
    assert (op.back, op.ahead, op.period) == (700, 0, 1)
    op = band_of(attention_example(chunks(64, 3))[0])
    assert (op.back, op.ahead, op.period) == (255, 63, 64)


@pytest.mark.parametrize(
    ("size", "pulse_frames", "delay"),
    [
        (4, 1, 3),
        (4, 2, 2),
        (4, 3, 3),
        (4, 4, 0),
        (4, 12, 0),
        (16, 5, 15),
        (16, 12, 12),
        (16, 16, 0),
        (16, 40, 8),
    ],
)
def test_frames_of_a_chunk_wait_for_the_pulse_of_its_last(size: int, pulse_frames: int, delay: int) -> None:
    """A frame does not wait for frames of its own pulse."""
    proto, feeds = attention_example(chunks(size, 1))
    model = assert_streams_agree(proto, feeds, 1, pulses=(pulse_frames,), lengths=(1, 16, 47, 100))
    assert model.outputs[0].delay == delay


@pytest.mark.parametrize(
    ("pulse_frames", "delay"),
    [(1, 10), pytest.param(2, 8, marks=pytest.mark.slow), (4, 4), pytest.param(8, 4, marks=pytest.mark.slow)],
)
def test_chunks_of_several_layers_end_in_one_pulse(pulse_frames: int, delay: int) -> None:
    """The first frame is left out, so the first of three layers has to wait until its chunks end where pulses do."""
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    proto = block(chunks(4, 1), 3).model(feeds)
    proto.graph.input[0].name = "late"
    bounds = {"first": [1], "end": [1 << 40], "time": [1]}
    proto.graph.initializer.extend(from_array(np.array(value), name) for name, value in bounds.items())
    proto.graph.node.insert(0, node("Slice", "late first end time", "x"))
    model = load_decluttered(proto).pulsify(pulse=pulse_frames)
    assert model.outputs[0].delay == delay
    pulse.verify(model).require()


@pytest.mark.parametrize(("back", "ahead"), [(4, -1), (6, -3), (-1, 4), (2, 2)])
def test_frames_that_attend_to_nothing_may_be_zeros(back: int, ahead: int) -> None:
    """At the ends of the stream; their weights are NaN, and replaced by zeros."""
    proto, feeds = attention_example(window(back, ahead), clean=True)
    op = band_of(proto)
    assert (op.back, op.ahead, op.empty) == (back, ahead, 0.0)
    assert assert_streams_agree(proto, feeds, 1).outputs[0].delay == max(0, ahead)


def test_frames_that_attend_to_nothing_are_nan() -> None:
    """Streamed and offline they are NaN, if the model does not replace them."""
    assert_streams_agree(*attention_example(window(3, -1)), 1)


def test_a_finite_mask_over_a_whole_row_is_refused() -> None:
    """Offline such a frame sees every frame of the stream."""
    with pytest.raises(PulsifyError, match="read all frames; mask with -inf"):
        load_decluttered(attention_example(window(3, -1, -1e9))[0]).pulsify()


def test_heads_may_be_a_batch_axis() -> None:
    """The mask is added to scores whose heads are grouped otherwise."""
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    assert_streams_agree(flat_heads(MASKS["slopes"][0]).model(feeds), feeds, 1)
    assert band_of(flat_heads(MASKS["slopes"][0]).model(feeds)).bias.shape == (2, 1, 10)


@pytest.mark.parametrize(
    ("back", "ahead", "delay"), [(3, 0, 2), (3, 1, 3), (0, 4, 6), (5, -1, 1), (6, -4, 0)]
)
def test_queries_keys_and_values_may_have_different_delays(back: int, ahead: int, delay: int) -> None:
    """Keys have a prefix of two, values are two late; time is the last axis."""
    feeds = {"x": floats("x", 1, WIDTH, 9)}
    proto = convolved_keys(window(back, ahead)).model(feeds)
    model = assert_streams_agree(proto, feeds, 2, lengths=(1, 6, 12, 29))
    assert model.outputs[0].delay == delay


def test_causal_convolutions_around_attention_add_no_delay() -> None:
    graph = AttentionBuilder(frames_axis=2)
    w = [graph.constant(floats(n, WIDTH, WIDTH, 3) / 5) for n in range(2)]
    h = graph.add("Conv", "x", w[0], kernel_shape=[3], pads=[2, 0])
    scores = graph.add("MatMul", graph.add("Transpose", h, perm=[0, 2, 1]), h)
    weights = graph.add("Softmax", trilu(4)(graph, scores), axis=2)
    h = graph.add("MatMul", h, graph.add("Transpose", weights, perm=[0, 2, 1]))
    graph.add("Conv", h, w[1], kernel_shape=[3], pads=[2, 0], name="y")
    feeds = {"x": floats("x", 1, WIDTH, 9)}
    assert assert_streams_agree(graph.model(feeds), feeds, 2).outputs[0].delay == 0


def test_the_delays_of_layers_add_up() -> None:
    """The residual connection is delayed by as much."""
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    proto = block(window(3, 2)).model(feeds)
    model = assert_streams_agree(proto, feeds, 1)
    assert model.outputs[0].delay == 4
    assert sum(isinstance(node.op, BandedAttentionStream) for node in model.graph.nodes) == 2
    assert assert_streams_agree(block(trilu(6), 3).model(feeds), feeds, 1).outputs[0].delay == 0


def test_a_band_counts_frames_at_half_the_rate() -> None:
    model = assert_streams_agree(*subsampled_attention(window(3, 2)), 2, pulses=(2, 6), lengths=(2, 3, 9, 24))
    assert (model.outputs[0].rate, model.outputs[0].delay) == (0.5, 2)


def test_weights_that_are_an_output_are_refused() -> None:
    """They have two axes that grow; without them the model streams."""
    proto, _ = attention_example(window(2, 0))
    typed = pulse.load(proto).analyse()
    (softmax,) = (node.name for node in typed.graph.nodes if node.op.name == "softmax")
    with pytest.raises(PulsifyError, match="every frame of one operand"):
        typed.with_outputs(["y", softmax]).declutter().pulsify()
    assert typed.with_outputs(["y"]).declutter().pulsify().outputs[0].delay == 0


@pytest.mark.parametrize("flat", [True, False])
def test_the_attention_operator_streams(flat: bool) -> None:
    """Its causal form streams within ``max_context`` frames; masks of positions stream, too."""
    shape = (1, 9, WIDTH) if flat else (1, HEADS, 9, 4)
    heads = {"q_num_heads": HEADS, "kv_num_heads": HEADS} if flat else {}
    feeds = {name: floats(name, *shape) for name in "xkv"}
    axis = 1 if flat else 2
    proto = onnx_attention(flat=flat, is_causal=1, **heads).model(feeds, 23)
    assert_streams_agree(proto, feeds, axis, max_context=31)
    graph = AttentionBuilder(frames_axis=axis)
    mask = graph.is_between(graph.distances(), -1, 4)
    graph.add("Attention", "x", "k", "v", mask, name="y", **heads)
    assert assert_streams_agree(graph.model(feeds, 23), feeds, axis).outputs[0].delay == 1


def test_heads_of_queries_may_share_keys() -> None:
    """Two heads of queries share one head of keys and values."""
    feeds = {"x": floats("x", 1, 4, 9, 4), "k": floats("k", 1, 2, 9, 4), "v": floats("v", 1, 2, 9, 6)}
    graph = AttentionBuilder(frames_axis=2)
    graph.add("Attention", "x", "k", "v", graph.is_between(graph.distances(), 0, 4), name="y")
    assert_streams_agree(graph.model(feeds, 23), feeds, 2)


def test_a_random_band_is_found() -> None:
    """A learnt table over two rows and two heads comes back as it is."""
    rng = np.random.default_rng(3)
    table = next_noise(rng, 2, 3, 6)
    table[rng.random(table.shape) < 0.3] = -np.inf
    table[..., 3] = 1.0
    op = BandedAttention(1.0, table, 3)
    stored = op.full_bias(60).astype(np.float32)[None]

    def mask(graph: AttentionBuilder, scores: str) -> str:
        return graph.add("Add", scores, cut_to_frames(graph, graph.constant(stored), (2, 3)))

    proto, feeds = attention_example(mask)
    band = band_of(proto)
    back = 3 if (table[..., 0] > -np.inf).any() else 2
    ahead = 2 if (table[..., -1] > -np.inf).any() else 1
    assert (band.back, band.ahead, band.period) == (back, ahead, 3)
    np.testing.assert_array_equal(band.full_bias(50), op.full_bias(50)[None])
    assert_streams_agree(proto, feeds, 1)


def test_rotary_positions_stream() -> None:
    """Queries and keys are rotated by angles that grow with the position."""
    graph = AttentionBuilder()
    steps, _ = graph.positions()
    angles = graph.add("Mul", graph.add("Cast", steps, to=1), graph.constant([[1.0, 0.25, 0.1, 0.01]]))
    sine, cosine = graph.add("Sin", angles), graph.add("Cos", angles)

    def turn(x: str) -> str:
        low, high = (
            graph.add(
                "Slice",
                x,
                graph.integers(first),
                graph.integers(first + 4),
                graph.integers(2),
                graph.integers(1),
            )
            for first in (0, 4)
        )
        real = graph.add("Sub", graph.add("Mul", low, cosine), graph.add("Mul", high, sine))
        imaginary = graph.add("Add", graph.add("Mul", low, sine), graph.add("Mul", high, cosine))
        return graph.add("Concat", real, imaginary, axis=2)

    graph.add(
        "Identity",
        heads(graph, turn(graph.linear("x")), turn(graph.linear("x")), "x", window(5, 2)),
        name="y",
    )
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    assert assert_streams_agree(graph.model(feeds), feeds, 1).outputs[0].delay == 2


def test_keys_that_are_positions_alone_stream() -> None:
    """A table of keys is read at the place where the band needs it."""
    graph = AttentionBuilder()
    ends = graph.add("Unsqueeze", graph.frames(), graph.integers(0))
    table = graph.constant(floats("table", 1, 60, WIDTH))
    keys = graph.add("Slice", table, graph.integers(0), ends, graph.integers(1), graph.integers(1))
    graph.add("Identity", heads(graph, "x", keys, "x", window(3, 2)), name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    assert assert_streams_agree(graph.model(feeds), feeds, 1).outputs[0].delay == 2


def relative(mask: Mask, offset: int = 0) -> tuple[ModelProto, Feeds]:
    """Scores with a projected table of relative positions, shifted by a padding and two reshapes; 40 frames at most.

    offset   of the slice of the table; anything but 0 is no shift by the distance
    """
    graph = AttentionBuilder()
    unit, begin, axis = graph.integers(1), graph.integers(0), graph.integers(1)
    frames = graph.add("Unsqueeze", graph.frames(), begin)
    twice = graph.add("Sub", graph.add("Add", frames, frames), unit)
    table = graph.constant(floats("relative", 1, 2 * 40 - 1, WIDTH))
    start = graph.add("Sub", graph.integers(40), frames)
    positions = graph.add("Slice", table, start, graph.add("Add", start, twice), axis, unit)
    queries = [graph.add("Add", graph.linear("x"), graph.constant(floats(n, WIDTH))) for n in range(2)]
    keys = [graph.add("Transpose", graph.linear(x), perm=[0, 2, 1]) for x in ("x", positions)]
    scores, more = (graph.add("MatMul", q, k) for q, k in zip(queries, keys))
    padded = graph.add("Pad", more, graph.integers(0, 0, 1, 0, 0, 0))
    turned = graph.add("Reshape", padded, graph.add("Concat", unit, graph.integers(-1), frames, axis=0))
    rest = graph.add("Slice", turned, unit, graph.integers(1 << 40), axis, unit)
    back = graph.add("Reshape", rest, graph.add("Concat", unit, frames, twice, axis=0))
    cut = graph.add("Add", frames, graph.integers(offset))
    shifted = graph.add("Slice", back, graph.integers(offset), cut, graph.integers(2), unit)
    total = graph.add("Div", graph.add("Add", scores, shifted), graph.constant(2.0))
    graph.add("MatMul", graph.add("Softmax", mask(graph, total), axis=2), "x", name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return graph.model(feeds), feeds


@pytest.mark.parametrize(
    ("mask", "delay"),
    [
        pytest.param(chunks(4, 1), 3, id="chunks"),
        pytest.param(window(5, 2), 2, id="window"),
        pytest.param(window(6, 0), 0, id="causal"),
    ],
)
def test_relative_positions_that_are_shifted_stream(mask: Mask, delay: int) -> None:
    """Transformer-XL and the Conformer shift like this; streams are as long as the table allows."""
    proto, feeds = relative(mask)
    model = assert_streams_agree(proto, feeds, 1, pulses=(1, 7), lengths=(1, 2, 5, 13, 40))
    assert model.outputs[0].delay == delay
    assert compile_model(model, "numpy").limit == 40


def test_shifted_positions_stream_far_slower_than_the_input() -> None:
    """A front of audio makes a frame of hundreds of samples: here each hundredth sample is one."""
    proto, _ = relative(window(5, 2))
    proto.graph.input[0].name = "samples"
    bounds = {"first": [0], "end": [1 << 40], "time": [1], "step": [100]}
    proto.graph.initializer.extend(from_array(np.array(value), name) for name, value in bounds.items())
    proto.graph.node.insert(0, node("Slice", "samples first end time step", "x"))
    model = load_decluttered(proto).pulsify(pulse=100)
    assert (model.outputs[0].rate, model.outputs[0].delay) == (Fraction(1, 100), 2)
    pulse.verify(proto, pulse=100, lengths=[100, 501, 1700]).require()


def test_another_shift_is_refused() -> None:
    """The shift is a column too far: a score of another distance."""
    with pytest.raises(PulsifyError, match=r"where the table begins .* depends on the length of the stream"):
        load_decluttered(relative(window(5, 0), 1)[0]).pulsify()


@pytest.mark.parametrize("low", [-np.inf, -1e4])
def test_weights_that_are_masked_again_stream(low: float) -> None:
    """The condition is that of the scores, so it changes nothing if a frame attends to any other."""
    graph = AttentionBuilder()
    scores = graph.add("MatMul", "x", graph.add("Transpose", graph.linear("x"), perm=[0, 2, 1]))
    hidden = graph.add("Not", graph.is_between(graph.distances(), 0, 4))
    weights = graph.add("Softmax", graph.add("Where", hidden, graph.constant(low), scores), axis=2)
    again = graph.add("Where", hidden, graph.constant(0.0), weights)
    graph.add("MatMul", again, "x", name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    assert assert_streams_agree(graph.model(feeds), feeds, 1, pulses=(4,)).outputs[0].delay == 0


def test_weights_that_are_masked_otherwise_are_refused() -> None:
    """Frames that count in the softmax and not in the mean."""
    graph = AttentionBuilder()
    scores = graph.add("MatMul", "x", graph.add("Transpose", graph.linear("x"), perm=[0, 2, 1]))
    weights = graph.add("Softmax", window(4, 0)(graph, scores), axis=2)
    again = graph.add("Where", graph.is_between(graph.distances(), 2, 4), graph.constant(0.0), weights)
    graph.add("MatMul", again, "x", name="y")
    with pytest.raises(PulsifyError, match="every frame of one operand meets every frame of the other"):
        load_decluttered(graph.model({"x": floats("x", 1, 9, WIDTH)})).pulsify()


def test_scores_may_add_products_with_positions() -> None:
    """Queries times keys, plus queries with another bias times a projected table of positions."""
    graph = AttentionBuilder()
    ends = graph.add("Unsqueeze", graph.frames(), graph.integers(0))
    table = graph.constant(floats("table", 1, 60, WIDTH))
    positions = graph.add("Slice", table, graph.integers(0), ends, graph.integers(1), graph.integers(1))
    biased = [graph.add("Add", graph.linear("x"), graph.constant(floats(n, WIDTH))) for n in range(2)]
    keys = [graph.add("Transpose", graph.linear(x), perm=[0, 2, 1]) for x in ("x", positions)]
    scores = graph.add("Add", *(graph.add("MatMul", q, k) for q, k in zip(biased, keys)))
    weights = graph.add("Softmax", chunks(4, 1)(graph, graph.add("Div", scores, graph.constant(2.0))), axis=2)
    graph.add("MatMul", weights, "x", name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    model = assert_streams_agree(graph.model(feeds), feeds, 1, pulses=(1, 7))
    assert model.outputs[0].delay == 3
    assert sum(isinstance(node.op, BandedAttentionStream) for node in model.graph.nodes) == 1


def test_a_mask_that_is_an_input_is_refused() -> None:
    """The values of such a mask are unknown before the stream begins."""

    def mask_of_input(graph: AttentionBuilder, scores: str) -> str:
        return add_mask(
            graph,
            scores,
            graph.add(
                "And",
                graph.is_between(graph.distances(), 0, 2),
                graph.add("Greater", "m", graph.constant(0.0)),
            ),
        )

    feeds = {"x": floats("x", 1, 9, WIDTH), "m": floats("m", 1, 9)}
    with pytest.raises(PulsifyError, match="1 node refused") as error:
        load_decluttered(self_attention(mask_of_input).model(feeds)).pulsify()
    assert "its mask is computed from input m, so which frames meet is not known" in str(error.value)
    assert "omit a mask of padding, since a stream has none" in str(error.value)


def test_layers_share_the_work_of_reading_a_mask() -> None:
    """Equal masks of several layers are one after declutter, and give equal tables."""
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    typed = load_decluttered(block(chunks(4, 1), 3).model(feeds))
    graph = band_attention(typed, typed.find_symbol(None)).model.graph
    tables = [node.op.bias for node in graph.nodes if isinstance(node.op, BandedAttention)]
    assert len(tables) == 3
    assert all(np.array_equal(table, tables[0]) for table in tables)
