"""Attention with limited reach, streamed: equal to onnxruntime offline, at the least delay, or refused."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.errors import InputError, PulsifyError
from pulse.models import PulsedModel, TypedModel
from pulse.ops.attention import BandedAttention, BandedAttentionStream
from pulse.program.compiler import BACKENDS, compile_model
from pulse.program.whole import run_whole
from pulse.pulsify.attention import band_attention
from tests.pulse.cases.attention import (
    HEADS,
    MASKS,
    WIDTH,
    Graph,
    Mask,
    added,
    block,
    causal,
    chunks,
    convolved,
    flat_heads,
    full,
    heads,
    onnx_attention,
    self_attention,
    trilu,
    window,
)
from tests.pulse.cases.build import Feeds, floats
from tests.pulse.onnx.reference import reference

LENGTHS = (1, 2, 5, 13, 31)


def loaded(proto: ModelProto) -> TypedModel:
    return pulse.load(proto).analyse().declutter()


def at_length(feeds: Feeds, axis: int, length: int) -> Feeds:
    """Random inputs like these, of another length."""
    shapes = {name: list(value.shape) for name, value in feeds.items()}
    for shape in shapes.values():
        shape[axis] = length
    return {name: floats((name, length), *shape) for name, shape in shapes.items()}


def check(
    proto: ModelProto,
    feeds: Feeds,
    axis: int,
    pulses: Sequence[int] = (1, 4, 7),
    lengths: Sequence[int] = LENGTHS,
    max_context: int | None = None,
) -> PulsedModel:
    """Stream every length by every pulse on both backends; gives the model of the last pulse."""
    typed = loaded(proto)
    models = [typed.pulsify(pulse=n, max_context=max_context) for n in pulses]
    for length in lengths:
        values = at_length(feeds, axis, length)
        wanted = reference(proto, values)
        for model in models:
            for backend in BACKENDS:
                got, _ = run_whole(compile_model(model, backend).spawn(), values, np.nan)
                for result, expected in zip(got.values(), wanted, strict=True):
                    assert result.shape == expected.shape
                    np.testing.assert_allclose(
                        result,
                        expected,
                        1e-4,
                        1e-5,
                        err_msg=f"{backend}, pulse {model.pulse}, {length} frames",
                    )
    return models[-1]


def band_of(proto: ModelProto, max_context: int | None = None) -> BandedAttention:
    """The only attention of a model."""
    typed = loaded(proto)
    graph = band_attention(typed, typed.find_symbol(None), max_context).model.graph
    (op,) = (node.op for node in graph.nodes if isinstance(node.op, BandedAttention))
    return op


def example(mask: Mask, clean: bool = False) -> tuple[ModelProto, Feeds]:
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return self_attention(mask, clean).model(feeds), feeds


@pytest.mark.parametrize("name", MASKS)
def test_masks_are_recognised(name: str) -> None:
    """The table that is found, the delay, and every frame."""
    mask, back, ahead, period = MASKS[name]
    proto, feeds = example(mask)
    op = band_of(proto)
    assert (op.back, op.ahead, op.period) == (back, ahead, period)
    assert op.bias.shape[:-2] == ((1, 2) if name in ("slopes", "columns") else ())
    model = check(proto, feeds, 1)
    assert model.outputs[0].delay == ahead


def test_scale_and_table() -> None:
    """Scales before and after the mask are one; masked is -inf."""
    op = band_of(example(MASKS["filled"][0])[0])
    assert op.scale == pytest.approx(4**-0.5 / 1.5)
    assert op.bias.tolist() == [[0.0] * 5]
    op = band_of(example(MASKS["chunks"][0])[0])
    low = -np.inf
    assert op.bias.tolist() == [
        [low, low, *[0.0] * 9],
        [low, *[0.0] * 9, low],
        [*[0.0] * 9, low, low],
    ]
    op = band_of(example(MASKS["columns"][0])[0])
    np.testing.assert_allclose(op.bias[0, :, 0], [np.arange(-5, 1) * 0.5, np.arange(-5, 1) * 0.25])


def test_a_long_window_is_found() -> None:
    """Beyond the lengths that are tried first."""
    op = band_of(example(window(700, 0))[0])
    assert (op.back, op.ahead, op.period) == (700, 0, 1)
    op = band_of(example(chunks(64, 3))[0])
    assert (op.back, op.ahead, op.period) == (255, 63, 64)


def test_long_chunks_stream() -> None:
    """Chunks that are longer than a pulse, and pulses that are longer than a chunk."""
    proto, feeds = example(chunks(16, 1))
    assert check(proto, feeds, 1, pulses=(5, 16, 40), lengths=(1, 16, 47, 100)).outputs[0].delay == 15


@pytest.mark.parametrize(("back", "ahead"), [(4, -1), (6, -3), (-1, 4), (2, 2)])
def test_frames_that_see_nothing(back: int, ahead: int) -> None:
    """At the ends of the stream; their weights are NaN, and replaced by zeros."""
    proto, feeds = example(window(back, ahead), clean=True)
    op = band_of(proto)
    assert (op.back, op.ahead, op.empty) == (back, ahead, 0.0)
    assert check(proto, feeds, 1).outputs[0].delay == max(0, ahead)


def test_frames_that_see_nothing_are_nan() -> None:
    """As offline, where nothing replaces them."""
    check(*example(window(3, -1)), 1)


def test_a_finite_mask_over_a_whole_row_is_refused() -> None:
    """Offline such a frame sees every frame of the stream."""
    with pytest.raises(PulsifyError, match="sees all, where masked scores are finite; mask with -inf"):
        loaded(example(window(3, -1, -1e9))[0]).pulsify()


def test_heads_as_a_batch() -> None:
    """The mask is added in another grouping of the heads."""
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    check(flat_heads(MASKS["slopes"][0]).model(feeds), feeds, 1)
    assert band_of(flat_heads(MASKS["slopes"][0]).model(feeds)).bias.shape == (2, 1, 10)


@pytest.mark.parametrize(
    ("back", "ahead", "delay"), [(3, 0, 2), (3, 1, 3), (0, 4, 6), (5, -1, 1), (6, -4, 0)]
)
def test_queries_keys_and_values_at_different_places(back: int, ahead: int, delay: int) -> None:
    """Keys have a prefix of two, values are two late; time is the last axis."""
    feeds = {"x": floats("x", 1, WIDTH, 9)}
    proto = convolved(window(back, ahead)).model(feeds)
    model = check(proto, feeds, 2, lengths=(1, 6, 12, 29))
    assert model.outputs[0].delay == delay


def test_leads_of_all_cost_nothing() -> None:
    """Causal convolutions before and behind."""
    g = Graph(frames_axis=2)
    w = [g.constant(floats(n, WIDTH, WIDTH, 3) / 5) for n in range(2)]
    h = g.add("Conv", "x", w[0], kernel_shape=[3], pads=[2, 0])
    scores = g.add("MatMul", g.add("Transpose", h, perm=[0, 2, 1]), h)
    weights = g.add("Softmax", trilu(4)(g, scores), axis=2)
    h = g.add("MatMul", h, g.add("Transpose", weights, perm=[0, 2, 1]))
    g.add("Conv", h, w[1], kernel_shape=[3], pads=[2, 0], name="y")
    feeds = {"x": floats("x", 1, WIDTH, 9)}
    assert check(g.model(feeds), feeds, 2).outputs[0].delay == 0


def test_a_block_of_layers() -> None:
    """Layers add their delays; the residual waits."""
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    proto = block(window(3, 2)).model(feeds)
    model = check(proto, feeds, 1)
    assert model.outputs[0].delay == 4
    assert sum(isinstance(node.op, BandedAttentionStream) for node in model.graph.nodes) == 2
    assert check(block(trilu(6), 3).model(feeds), feeds, 1).outputs[0].delay == 0


def subsampled(mask: Mask) -> tuple[ModelProto, Feeds]:
    """Two frames become one before the attention."""
    g = Graph(frames_axis=2)
    w = g.constant(floats("w", WIDTH, WIDTH, 2) / 4)
    h = g.add("Conv", "x", w, kernel_shape=[2], strides=[2], pads=[0, 1])
    h = g.add("Transpose", h, perm=[0, 2, 1])
    g.frame_count = g.add("Gather", g.add("Shape", h), g.number(1))
    g.add("Identity", heads(g, h, h, h, mask), name="y")
    feeds = {"x": floats("x", 1, WIDTH, 9)}
    return g.model(feeds), feeds


def test_half_the_rate() -> None:
    """The band counts the frames of the attention."""
    model = check(*subsampled(window(3, 2)), 2, pulses=(2, 6), lengths=(2, 3, 9, 24))
    assert (model.outputs[0].rate, model.outputs[0].delay) == (0.5, 2)


def test_weights_that_are_an_output_are_refused() -> None:
    """They have two axes that grow; without them the model streams."""
    proto, _ = example(window(2, 0))
    typed = pulse.load(proto).analyse()
    (softmax,) = (node.name for node in typed.graph.nodes if node.op.name == "softmax")
    with pytest.raises(PulsifyError, match="every frame of one operand"):
        typed.with_outputs(["y", softmax]).declutter().pulsify()
    assert typed.with_outputs(["y"]).declutter().pulsify().outputs[0].delay == 0


def refusal(proto: ModelProto, max_context: int | None = None) -> str:
    with pytest.raises(PulsifyError) as caught:
        loaded(proto).pulsify(max_context=max_context)
    (only,) = caught.value.refusals
    assert only.node.startswith("scores")
    return str(only)


def test_full_attention_is_refused() -> None:
    """By one refusal that names it; no context helps."""
    for context in (None, 50):
        said = refusal(example(full)[0], context)
        assert "attention" in said and "stream axis 2: whole" in said
        assert "up to the end of the stream" in said and "limit its reach (a window, or chunks)" in said
        assert "max_context" not in said


def test_other_masks_that_are_refused() -> None:
    """Patterns that do not repeat, and numbers that do not mask."""

    def first(g: Graph, scores: str) -> str:
        rows, columns = g.positions()
        near = g.between(g.add("Sub", rows, columns), 0, 3)
        return added(g, scores, g.add("Or", near, g.add("Less", columns, g.number(2))))

    assert "every frame also meets the first 2 frames of the stream" in refusal(example(first)[0])
    proto, feeds = example(first)
    check(proto, feeds, 1, lengths=(1, 5, 13, 40), max_context=40)

    def weak(g: Graph, scores: str) -> str:
        return g.add("Where", g.between(g.behind(), 0, 3), scores, g.constant(-5.0))

    assert "puts numbers above -10000 in the place of scores" in refusal(example(weak)[0])


def test_causal_attention_needs_a_context() -> None:
    """Without one it is refused, with one it is exact and longer streams are refused."""
    proto, feeds = example(causal)
    said = refusal(proto)
    assert "every frame meets all frames before it" in said
    assert "limit its reach (a window, or chunks), or give max_context=" in said
    model = check(proto, feeds, 1, lengths=(1, 5, 13, 20), max_context=20)
    op = band_of(proto, 20)
    assert (op.back, op.ahead, op.period, model.outputs[0].delay) == (19, 0, 1, 0)
    for backend in BACKENDS:
        program = compile_model(model, backend)
        assert program.limit == 20
        with pytest.raises(InputError, match="at most 20 frames of T"):
            run_whole(program.spawn(), at_length(feeds, 1, 21))


def test_a_context_leaves_the_offline_model_alone() -> None:
    """The same typed model runs any length, and can be pulsified again."""
    proto, feeds = example(causal)
    typed = loaded(proto)
    for context in (5, 30):
        model = typed.pulsify(pulse=2, max_context=context)
        assert compile_model(model, "numpy").limit == context
    assert typed.run(at_length(feeds, 1, 50))["y"].shape == (1, 50, WIDTH)
    report = pulse.verify(typed, 2, lengths=[4, 5, 6], max_context=5).require()
    assert (report.lengths, report.skipped) == ((4, 5), (6,))
    with pytest.raises(PulsifyError, match="max_context=0 is not a positive"):
        typed.pulsify(max_context=0)


def test_a_context_limits_nothing_where_the_reach_is_limited() -> None:
    """Then streams of any length are taken."""
    model = loaded(example(window(3, 1))[0]).pulsify(pulse=4, max_context=10)
    assert compile_model(model, "numpy").limit is None


def test_a_context_counts_frames_of_the_symbol() -> None:
    """Ten frames of attention at half the rate."""
    proto, feeds = subsampled(causal)
    model = check(proto, feeds, 2, pulses=(2, 6), lengths=(2, 3, 9, 20), max_context=20)
    assert compile_model(model, "numpy").limit == 20
    assert band_of(proto, 20).back == 9


def test_slopes_and_chunks_up_to_a_context() -> None:
    """Reach without limit, with a bias for each head, or a chunk ahead."""

    def slopes(g: Graph, scores: str) -> str:
        distance = g.add("Cast", g.behind(), to=1)
        return causal(g, g.add("Sub", scores, g.add("Mul", distance, g.constant([[[0.5]], [[0.125]]]))))

    check(*example(slopes), 1, max_context=31)

    def all_chunks(g: Graph, scores: str) -> str:
        rows, columns = (g.add("Div", steps, g.number(4)) for steps in g.positions())
        return added(g, scores, g.add("LessOrEqual", columns, rows))

    assert check(*example(all_chunks), 1, max_context=31).outputs[0].delay == 3


def test_a_stored_causal_mask_limits_the_stream_itself() -> None:
    """No context is needed."""
    rows, columns = np.arange(24)[:, None], np.arange(24)
    example_of_table = example(stored(np.where(columns <= rows, 0, -np.inf)))
    model = check(*example_of_table, 1, lengths=(1, 13, 24))
    assert compile_model(model, "numpy").limit == 24


def stored(values: np.ndarray) -> Mask:
    """A table that is added, cut to the frames that there are."""

    def mask(g: Graph, scores: str) -> str:
        table = g.constant(values)
        ends = g.add("Unsqueeze", g.frames(), g.integers(0))
        for axis in (0, 1):
            table = g.add("Slice", table, g.integers(0), ends, g.integers(axis), g.integers(1))
        return g.add("Add", scores, table)

    return mask


def test_a_stored_mask_is_read_to_its_end() -> None:
    """One pair of frames far from its beginning breaks the band."""
    rows, columns = np.arange(1800)[:, None], np.arange(1800)
    values = np.where((columns <= rows) & (rows - columns < 5), 0, -np.inf)
    assert band_of(example(stored(values))[0]).back == 4
    values[1500, 1400] = 0
    op = band_of(example(stored(values))[0])
    assert op.period == 1800 and np.array_equal(op.full_bias(1800), values)


@pytest.mark.parametrize("place", [700, 1500, 3000])
def test_a_mask_that_changes_at_a_position_is_refused(place: int) -> None:
    """However late: the constant in the mask says where to look."""

    def mask(g: Graph, scores: str) -> str:
        rows, columns = g.positions()
        near = g.between(g.add("Sub", rows, columns), 0, 3)
        return added(g, scores, g.add("Or", near, g.add("Less", g.number(place), columns)))

    assert "attention" in refusal(example(mask)[0])


def positions_of(g: Graph) -> tuple[str, str]:
    """Rows and columns, and what is near: three frames behind, or none."""
    rows, columns = g.positions()
    return rows, g.between(g.add("Sub", rows, columns), 0, 3)


def opened_late(g: Graph, scores: str) -> str:
    """From frame 5000 on, one more frame is seen."""
    rows, near = positions_of(g)
    farther = g.add("And", g.between(g.behind(), 4, 4), g.add("Greater", rows, g.number(4999)))
    return added(g, scores, g.add("Or", near, farther))


def opened_in_turns(g: Graph, scores: str) -> str:
    """Every other 5000 frames."""
    rows, near = positions_of(g)
    odd = g.add("Mod", g.add("Div", rows, g.number(5000)), g.number(2))
    farther = g.add("And", g.between(g.behind(), 4, 4), g.add("Equal", odd, g.number(1)))
    return added(g, scores, g.add("Or", near, farther))


def far_pairs(g: Graph, scores: str) -> str:
    """Each frame also meets the one 6000 frames before it."""
    _, near = positions_of(g)
    return added(g, scores, g.add("Or", near, g.between(g.behind(), 6000, 6000)))


@pytest.mark.parametrize(
    ("mask", "node"),
    [(opened_late, r"\(greater\)"), (opened_in_turns, r"\(div\)"), (far_pairs, "or more apart may meet")],
)
def test_a_mask_that_changes_beyond_all_that_is_looked_at_is_refused(mask: Mask, node: str) -> None:
    """No run shows the change; a stream that ends before it is taken, and no longer one."""
    proto, feeds = example(mask)
    said = refusal(proto)
    assert "keeps one pattern up to frame 4096, but not surely beyond it" in said
    assert re.search(node, said) and "max_context=4096 or less" in said
    model = check(proto, feeds, 1, pulses=(4,), lengths=(1, 13, 40), max_context=40)
    assert compile_model(model, "numpy").limit == 40
    assert "not surely beyond it" in refusal(proto, 5000)


def clamped_chunks(g: Graph, scores: str) -> str:
    """From ``max(chunk - 2, 0) * 4`` up to ``min((chunk + 1) * 4, T)``, as recognisers write it."""
    rows, columns = g.positions()
    chunk = g.add("Div", rows, g.number(4))
    first = g.add("Mul", g.add("Max", g.add("Sub", chunk, g.number(2)), g.number(0)), g.number(4))
    end = g.add("Min", g.add("Mul", g.add("Add", chunk, g.number(1)), g.number(4)), g.frames())
    seen = g.add("And", g.add("GreaterOrEqual", columns, first), g.add("Less", columns, end))
    return added(g, scores, seen)


def rounded_chunks(g: Graph, scores: str) -> str:
    """Quotients in floats, as ``torch.div(rounding_mode="trunc")`` is exported."""

    def chunk(steps: str) -> str:
        quotient = g.add("Div", g.add("Cast", steps, to=1), g.constant(4.0))
        size = g.add("Floor", g.add("Abs", quotient))
        return g.add("Cast", g.add("Mul", size, g.add("Sign", quotient)), to=7)

    rows, columns = map(chunk, g.positions())
    return added(g, scores, g.between(g.add("Sub", rows, columns), 0, 2))


def counted(g: Graph, scores: str) -> str:
    """Positions as running sums of ones."""
    ones = g.add("Expand", g.number(1), g.add("Unsqueeze", g.frames(), g.integers(0)))
    steps = g.add("CumSum", ones, g.number(0))
    behind = g.add("Sub", g.add("Unsqueeze", steps, g.integers(1)), g.add("Unsqueeze", steps, g.integers(0)))
    return added(g, scores, g.between(behind, 0, 5))


def by_remainder(g: Graph, scores: str) -> str:
    """Frames of one chunk have the same position less its remainder."""
    rows, columns = (g.add("Sub", steps, g.add("Mod", steps, g.number(5))) for steps in g.positions())
    return added(g, scores, g.add("Equal", rows, columns))


def of_pairs(g: Graph, numbers: str, position: str) -> str:
    """For each pair of frames the number of its row or column, [1, T], looked up by a batch of 0 and the position."""
    index = [g.add("Expand", x, g.square()) for x in (g.constant([[0]], np.int64), position)]
    places = [g.add("Unsqueeze", x, g.integers(2)) for x in index]
    return g.add("GatherND", numbers, g.add("Concat", *places, axis=-1))


def looked_up_chunks(g: Graph, scores: str) -> str:
    """A function of each pair: whether both have the same chunk."""
    rows, columns = g.positions()
    chunk = g.add("Div", columns, g.number(4))
    return added(g, scores, g.add("Equal", of_pairs(g, chunk, rows), of_pairs(g, chunk, columns)))


def packed(g: Graph, scores: str) -> str:
    """A window inside of each sequence, of which there is one: positions never start anew."""
    rows, columns = g.positions()
    axis, begin = g.integers(1), g.integers(0)
    first = g.add("Slice", columns, begin, g.integers(1), axis)
    joined = g.add("Concat", g.add("Sub", first, g.number(1)), columns, axis=1)
    last = g.add("Unsqueeze", g.frames(), begin)
    step = g.add("Sub", columns, g.add("Slice", joined, begin, last, axis))
    begins = g.add("Cast", g.add("Not", g.add("Equal", step, g.number(1))), to=7)
    sequence = g.add("CumSum", begins, g.number(1))
    same = g.add("Equal", of_pairs(g, sequence, rows), of_pairs(g, sequence, columns))
    return added(g, scores, g.add("And", same, g.between(g.behind(), 0, 6)))


@pytest.mark.parametrize(
    ("mask", "band"),
    [
        (looked_up_chunks, (3, 3, 4)),
        (packed, (6, 0, 1)),
        (clamped_chunks, (11, 3, 4)),
        (rounded_chunks, (11, 3, 4)),
        (counted, (5, 0, 1)),
        (by_remainder, (4, 4, 5)),
    ],
)
def test_masks_that_are_proved_for_all_lengths(mask: Mask, band: tuple[int, int, int]) -> None:
    """What they compute is the same after so many frames, and nothing is seen from far away."""
    proto, feeds = example(mask)
    op = band_of(proto)
    assert (op.back, op.ahead, op.period) == band
    assert compile_model(check(proto, feeds, 1, pulses=(4,)), "numpy").limit is None


@pytest.mark.parametrize("flat", [True, False])
def test_the_attention_node(flat: bool) -> None:
    """Its causal form up to a context; with a mask of positions at any length."""
    shape = (1, 9, WIDTH) if flat else (1, HEADS, 9, 4)
    given = {"q_num_heads": HEADS, "kv_num_heads": HEADS} if flat else {}
    feeds = {name: floats(name, *shape) for name in "xkv"}
    axis = 1 if flat else 2
    proto = onnx_attention(flat=flat, is_causal=1, **given).model(feeds, 23)
    check(proto, feeds, axis, max_context=31)
    g = Graph(frames_axis=axis)
    mask = g.between(g.behind(), -1, 4)
    g.add("Attention", "x", "k", "v", mask, name="y", **given)
    assert check(g.model(feeds, 23), feeds, axis).outputs[0].delay == 1


def test_queries_that_share_keys() -> None:
    """Two heads of queries for each head of keys and values."""
    feeds = {"x": floats("x", 1, 4, 9, 4), "k": floats("k", 1, 2, 9, 4), "v": floats("v", 1, 2, 9, 6)}
    g = Graph(frames_axis=2)
    g.add("Attention", "x", "k", "v", g.between(g.behind(), 0, 4), name="y")
    check(g.model(feeds, 23), feeds, 2)


def test_a_random_band_is_found() -> None:
    """A learnt table over two rows and two heads comes back as it is."""
    rng = np.random.default_rng(3)
    table = rng.standard_normal((2, 3, 6)).astype(np.float32)
    table[rng.random(table.shape) < 0.3] = -np.inf
    table[..., 3] = 1.0
    op = BandedAttention(1.0, table, 3)
    stored = op.full_bias(60).astype(np.float32)[None]

    def mask(g: Graph, scores: str) -> str:
        bias = g.constant(stored)
        ends = g.add("Unsqueeze", g.frames(), g.integers(0))
        for axis in (2, 3):
            bias = g.add("Slice", bias, g.integers(0), ends, g.integers(axis), g.integers(1))
        return g.add("Add", scores, bias)

    proto, feeds = example(mask)
    found = band_of(proto)
    back = 3 if (table[..., 0] > -np.inf).any() else 2
    ahead = 2 if (table[..., -1] > -np.inf).any() else 1
    assert (found.back, found.ahead, found.period) == (back, ahead, 3)
    np.testing.assert_array_equal(found.full_bias(50), op.full_bias(50)[None])
    check(proto, feeds, 1)


def test_rotary_positions() -> None:
    """Queries and keys turned by angles that grow with the position."""
    g = Graph()
    steps, _ = g.positions()
    angles = g.add("Mul", g.add("Cast", steps, to=1), g.constant([[1.0, 0.25, 0.1, 0.01]]))
    sine, cosine = g.add("Sin", angles), g.add("Cos", angles)

    def turned(x: str) -> str:
        low, high = (
            g.add("Slice", x, g.integers(first), g.integers(first + 4), g.integers(2), g.integers(1))
            for first in (0, 4)
        )
        real = g.add("Sub", g.add("Mul", low, cosine), g.add("Mul", high, sine))
        imaginary = g.add("Add", g.add("Mul", low, sine), g.add("Mul", high, cosine))
        return g.add("Concat", real, imaginary, axis=2)

    g.add("Identity", heads(g, turned(g.linear("x")), turned(g.linear("x")), "x", window(5, 2)), name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    assert check(g.model(feeds), feeds, 1).outputs[0].delay == 2


def test_keys_that_are_positions_alone() -> None:
    """A table of keys is read at the place where the band needs it."""
    g = Graph()
    ends = g.add("Unsqueeze", g.frames(), g.integers(0))
    table = g.constant(floats("table", 1, 60, WIDTH))
    keys = g.add("Slice", table, g.integers(0), ends, g.integers(1), g.integers(1))
    g.add("Identity", heads(g, "x", keys, "x", window(3, 2)), name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    assert check(g.model(feeds), feeds, 1).outputs[0].delay == 2


def relative(mask: Mask, offset: int = 0) -> tuple[ModelProto, Feeds]:
    """Scores with a projected table of relative positions, shifted by a padding and two reshapes; 40 frames at most.

    offset   of the slice of the table; anything but 0 is no shift by the distance
    """
    g = Graph()
    one, begin, axis = g.integers(1), g.integers(0), g.integers(1)
    frames = g.add("Unsqueeze", g.frames(), begin)
    twice = g.add("Sub", g.add("Add", frames, frames), one)
    table = g.constant(floats("relative", 1, 2 * 40 - 1, WIDTH))
    start = g.add("Sub", g.integers(40), frames)
    positions = g.add("Slice", table, start, g.add("Add", start, twice), axis, one)
    queries = [g.add("Add", g.linear("x"), g.constant(floats(n, WIDTH))) for n in range(2)]
    keys = [g.add("Transpose", g.linear(x), perm=[0, 2, 1]) for x in ("x", positions)]
    scores, more = (g.add("MatMul", q, k) for q, k in zip(queries, keys))
    padded = g.add("Pad", more, g.integers(0, 0, 1, 0, 0, 0))
    turned = g.add("Reshape", padded, g.add("Concat", one, g.integers(-1), frames, axis=0))
    rest = g.add("Slice", turned, one, g.integers(1 << 40), axis, one)
    back = g.add("Reshape", rest, g.add("Concat", one, frames, twice, axis=0))
    cut = g.add("Add", frames, g.integers(offset))
    shifted = g.add("Slice", back, g.integers(offset), cut, g.integers(2), one)
    total = g.add("Div", g.add("Add", scores, shifted), g.constant(2.0))
    g.add("MatMul", g.add("Softmax", mask(g, total), axis=2), "x", name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return g.model(feeds), feeds


@pytest.mark.parametrize(("mask", "delay"), [(chunks(4, 1), 3), (window(5, 2), 2), (window(6, 0), 0)])
def test_relative_positions_that_are_shifted(mask: Mask, delay: int) -> None:
    """As Transformer-XL and the Conformer write them; streams are as long as the table allows."""
    proto, feeds = relative(mask)
    model = check(proto, feeds, 1, pulses=(1, 7), lengths=(1, 2, 5, 13, 40))
    assert model.outputs[0].delay == delay
    assert compile_model(model, "numpy").limit == 40


def test_another_shift_is_refused() -> None:
    """One column too far: a score of another distance."""
    with pytest.raises(PulsifyError):
        loaded(relative(window(5, 0), 1)[0]).pulsify()


@pytest.mark.parametrize("low", [-np.inf, -1e4])
def test_weights_that_are_masked_again(low: float) -> None:
    """By the condition that masked the scores, which changes nothing where a frame sees any other."""
    g = Graph()
    scores = g.add("MatMul", "x", g.add("Transpose", g.linear("x"), perm=[0, 2, 1]))
    hidden = g.add("Not", g.between(g.behind(), 0, 4))
    weights = g.add("Softmax", g.add("Where", hidden, g.constant(low), scores), axis=2)
    again = g.add("Where", hidden, g.constant(0.0), weights)
    g.add("MatMul", again, "x", name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    assert check(g.model(feeds), feeds, 1, pulses=(4,)).outputs[0].delay == 0


def test_weights_that_are_masked_otherwise_are_refused() -> None:
    """Frames that count in the softmax and not in the mean."""
    g = Graph()
    scores = g.add("MatMul", "x", g.add("Transpose", g.linear("x"), perm=[0, 2, 1]))
    weights = g.add("Softmax", window(4, 0)(g, scores), axis=2)
    again = g.add("Where", g.between(g.behind(), 2, 4), g.constant(0.0), weights)
    g.add("MatMul", again, "x", name="y")
    with pytest.raises(PulsifyError):
        loaded(g.model({"x": floats("x", 1, 9, WIDTH)})).pulsify()


def test_scores_with_positions_of_their_own() -> None:
    """Queries meet keys, and with another bias a projected table of positions, in the same scores."""
    g = Graph()
    ends = g.add("Unsqueeze", g.frames(), g.integers(0))
    table = g.constant(floats("table", 1, 60, WIDTH))
    positions = g.add("Slice", table, g.integers(0), ends, g.integers(1), g.integers(1))
    biased = [g.add("Add", g.linear("x"), g.constant(floats(n, WIDTH))) for n in range(2)]
    keys = [g.add("Transpose", g.linear(x), perm=[0, 2, 1]) for x in ("x", positions)]
    scores = g.add("Add", *(g.add("MatMul", q, k) for q, k in zip(biased, keys)))
    weights = g.add("Softmax", chunks(4, 1)(g, g.add("Div", scores, g.constant(2.0))), axis=2)
    g.add("MatMul", weights, "x", name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    model = check(g.model(feeds), feeds, 1, pulses=(1, 7))
    assert model.outputs[0].delay == 3
    assert sum(isinstance(node.op, BandedAttentionStream) for node in model.graph.nodes) == 1


def test_a_mask_that_is_an_input_is_refused() -> None:
    """What it lets through is not known before the stream begins."""

    def given(g: Graph, scores: str) -> str:
        return added(
            g, scores, g.add("And", g.between(g.behind(), 0, 2), g.add("Greater", "m", g.constant(0.0)))
        )

    feeds = {"x": floats("x", 1, 9, WIDTH), "m": floats("m", 1, 9)}
    with pytest.raises(PulsifyError, match="every frame of one operand meets every frame of the other"):
        loaded(self_attention(given).model(feeds)).pulsify()


def test_layers_share_the_work_of_reading_a_mask() -> None:
    """Equal masks of several layers are one after declutter, and give equal tables."""
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    typed = loaded(block(chunks(4, 1), 3).model(feeds))
    graph = band_attention(typed, typed.find_symbol(None)).model.graph
    tables = [node.op.bias for node in graph.nodes if isinstance(node.op, BandedAttention)]
    assert len(tables) == 3 and all(np.array_equal(table, tables[0]) for table in tables)
