"""Masks of attention: those that are refused, limited by a context, and proved for all lengths."""

import math
import re

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.errors import InputError, PulsifyError
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import run_whole
from pulse.pulsify.bands import mask as mask_runs
from tests.backends import BACKENDS
from tests.pulse.cases.attention import (
    HEADS,
    WIDTH,
    AttentionBuilder,
    Mask,
    add_mask,
    causal,
    full,
    window,
)
from tests.pulse.cases.build import floats
from tests.pulse.pulsify.bands.attention_checks import (
    assert_streams_agree,
    at_length,
    attention_example,
    band_of,
    cut_to_frames,
    load_decluttered,
    subsampled_attention,
    upsampled_attention,
)

SHORT_ELEMENTS = 1 << 20


@pytest.fixture
def short_runs(default_suite: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run masks up to 1024 frames in the default suite; slow runs, and users, run them up to 4096."""
    if default_suite:
        monkeypatch.setattr(mask_runs, "MAX_ELEMENTS", SHORT_ELEMENTS)


with_short_runs = pytest.mark.usefixtures("short_runs")


def longest_run() -> int:
    """The frames up to which masks are run."""
    return math.isqrt(mask_runs.MAX_ELEMENTS)


def refusal(proto: ModelProto, max_context: int | None = None) -> str:
    with pytest.raises(PulsifyError, match="1 node refused") as caught:
        load_decluttered(proto).pulsify(max_context=max_context)
    (only,) = caught.value.refusals
    assert only.node.startswith("scores")
    return str(only)


@pytest.mark.parametrize("context", [None, 50])
def test_full_attention_is_refused(context: int | None) -> None:
    """The refusal names the attention; a context alone does not help."""
    message = refusal(attention_example(full)[0], context)
    assert "attention" in message
    assert "stream axis 2: whole" in message
    assert "up to the end of the stream: attention in both directions" in message
    assert (
        "hide what is ahead (a causal mask, or chunks), and limit its reach (a window, or chunks; or"
        in message
    )
    assert "max_context=" in message


@with_short_runs
def test_masks_that_do_not_repeat_or_do_not_mask_are_refused() -> None:
    def first(graph: AttentionBuilder, scores: str) -> str:
        rows, columns = graph.positions()
        near = graph.is_between(graph.add("Sub", rows, columns), 0, 3)
        return add_mask(graph, scores, graph.add("Or", near, graph.add("Less", columns, graph.number(2))))

    assert "every frame also attends to the first 2 frames of the stream" in refusal(
        attention_example(first)[0]
    )
    proto, feeds = attention_example(first)
    assert_streams_agree(proto, feeds, 1, lengths=(1, 5, 13, 40), max_context=40)

    words = (
        "puts -5 instead of scores, and numbers above -10000 do not hide a frame for certain; mask with -inf"
    )
    for other in (-5.0, [-5.0], [[[[-5.0]]]]):

        def weak(graph: AttentionBuilder, scores: str, other: object = other) -> str:
            condition = graph.is_between(graph.distances(), 0, 3)
            return graph.add("Where", condition, scores, graph.constant(other))

        assert words in refusal(attention_example(weak)[0])


@with_short_runs
def test_causal_attention_needs_a_context() -> None:
    """A context makes it exact; without one it is refused, and longer streams are refused, too."""
    proto, feeds = attention_example(causal)
    message = refusal(proto)
    assert "every frame attends to all earlier frames" in message
    assert "limit its reach (a window, or chunks), or give max_context=" in message
    model = assert_streams_agree(proto, feeds, 1, lengths=(1, 5, 13, 20), max_context=20)
    op = band_of(proto, 20)
    assert (op.back, op.ahead, op.period, model.outputs[0].delay) == (19, 0, 1, 0)
    for backend in BACKENDS:
        program = compile_model(model, backend)
        assert program.limit == 20
        with pytest.raises(InputError, match="at most 20 frames of T"):
            run_whole(program.spawn(), at_length(feeds, 1, 21))


@with_short_runs
def test_a_context_leaves_the_offline_model_alone() -> None:
    """The same typed model runs any length, and can be pulsified again."""
    proto, feeds = attention_example(causal)
    typed = load_decluttered(proto)
    for context in (5, 30):
        model = typed.pulsify(pulse=2, max_context=context)
        assert compile_model(model, "numpy").limit == context
    assert typed.run(at_length(feeds, 1, 50))["y"].shape == (1, 50, WIDTH)
    report = pulse.verify(typed, 2, lengths=[4, 5, 6], max_context=5).require()
    assert (report.lengths, report.skipped) == ((4, 5), (6,))
    with pytest.raises(PulsifyError, match="max_context=0 is not a positive"):
        typed.pulsify(max_context=0)


def test_a_context_limits_nothing_where_the_reach_is_limited() -> None:
    model = load_decluttered(attention_example(window(3, 1))[0]).pulsify(pulse=4, max_context=10)
    assert compile_model(model, "numpy").limit is None


@with_short_runs
def test_a_context_counts_frames_of_the_symbol() -> None:
    """The attention sees ten frames at half the rate."""
    proto, feeds = subsampled_attention(causal)
    model = assert_streams_agree(proto, feeds, 2, pulses=(2, 6), lengths=(2, 3, 9, 20), max_context=20)
    assert compile_model(model, "numpy").limit == 20
    assert band_of(proto, 20).back == 9


@with_short_runs
def test_unlimited_slopes_and_chunks_stream_up_to_a_context() -> None:
    """Reach without limit, with a bias for each head, or a chunk ahead."""

    def slopes(graph: AttentionBuilder, scores: str) -> str:
        distance = graph.add("Cast", graph.distances(), to=1)
        return causal(
            graph, graph.add("Sub", scores, graph.add("Mul", distance, graph.constant([[[0.5]], [[0.125]]])))
        )

    assert_streams_agree(*attention_example(slopes), 1, max_context=31)

    def all_chunks(graph: AttentionBuilder, scores: str) -> str:
        rows, columns = (graph.add("Div", steps, graph.number(4)) for steps in graph.positions())
        return add_mask(graph, scores, graph.add("LessOrEqual", columns, rows))

    assert assert_streams_agree(*attention_example(all_chunks), 1, max_context=31).outputs[0].delay == 3


def test_the_size_of_a_stored_causal_mask_limits_the_stream() -> None:
    rows, columns = np.arange(24)[:, None], np.arange(24)
    example_of_table = attention_example(stored_table(np.where(columns <= rows, 0, -np.inf)))
    model = assert_streams_agree(*example_of_table, 1, lengths=(1, 13, 24))
    assert compile_model(model, "numpy").limit == 24


def stored_table(values: np.ndarray) -> Mask:
    """A table that is added, cut to the frames that there are."""

    def mask(graph: AttentionBuilder, scores: str) -> str:
        return graph.add("Add", scores, cut_to_frames(graph, graph.constant(values), (0, 1)))

    return mask


def test_a_stored_mask_is_read_to_its_end() -> None:
    """A pair of frames far from the beginning of the mask breaks the band."""
    rows, columns = np.arange(1800)[:, None], np.arange(1800)
    values = np.where((columns <= rows) & (rows - columns < 5), 0, -np.inf)
    assert band_of(attention_example(stored_table(values))[0]).back == 4
    values[1500, 1400] = 0
    op = band_of(attention_example(stored_table(values))[0])
    assert op.period == 1800
    assert np.array_equal(op.full_bias(1800), values)


@with_short_runs
@pytest.mark.parametrize(
    "place", [700, 900, *(pytest.param(n, marks=pytest.mark.slow) for n in (1500, 3000))]
)
def test_a_mask_that_changes_at_a_position_is_refused(place: int) -> None:
    """However late: the constant in the mask says where to look."""

    def mask(graph: AttentionBuilder, scores: str) -> str:
        rows, columns = graph.positions()
        near = graph.is_between(graph.add("Sub", rows, columns), 0, 3)
        return add_mask(graph, scores, graph.add("Or", near, graph.add("Less", graph.number(place), columns)))

    assert "attention" in refusal(attention_example(mask)[0])


def positions_of(graph: AttentionBuilder) -> tuple[str, str]:
    """Rows and columns, and what is near: three earlier frames, or none."""
    rows, columns = graph.positions()
    return rows, graph.is_between(graph.add("Sub", rows, columns), 0, 3)


def opened_late(graph: AttentionBuilder, scores: str) -> str:
    """Attend to one more frame after a frame beyond the runs."""
    rows, near = positions_of(graph)
    farther = graph.add(
        "And",
        graph.is_between(graph.distances(), 4, 4),
        graph.add("Greater", rows, graph.number(longest_run() + 900)),
    )
    return add_mask(graph, scores, graph.add("Or", near, farther))


def opened_in_turns(graph: AttentionBuilder, scores: str) -> str:
    """Attend to one more frame in every other block of frames, blocks longer than the runs."""
    rows, near = positions_of(graph)
    odd = graph.add("Mod", graph.add("Div", rows, graph.number(longest_run() + 900)), graph.number(2))
    farther = graph.add(
        "And", graph.is_between(graph.distances(), 4, 4), graph.add("Equal", odd, graph.number(1))
    )
    return add_mask(graph, scores, graph.add("Or", near, farther))


def far_pairs(graph: AttentionBuilder, scores: str) -> str:
    """Each frame also meets one that is farther before it than the runs are long."""
    _, near = positions_of(graph)
    far = longest_run() + 1900
    return add_mask(graph, scores, graph.add("Or", near, graph.is_between(graph.distances(), far, far)))


@with_short_runs
@pytest.mark.parametrize(
    ("mask", "node"),
    [(opened_late, r"\(greater\)"), (opened_in_turns, r"\(div\)"), (far_pairs, "or more apart may attend")],
)
def test_a_mask_that_changes_beyond_the_runs_is_refused(mask: Mask, node: str) -> None:
    """The change is in no run; a stream that ends before it is taken, and no longer one."""
    proto, feeds = attention_example(mask)
    message = refusal(proto)
    assert f"keeps one pattern up to frame {longest_run()}, but not provably beyond it" in message
    assert re.search(node, message)
    assert f"max_context={longest_run()} or less" in message
    model = assert_streams_agree(proto, feeds, 1, pulses=(4,), lengths=(1, 13, 40), max_context=40)
    assert compile_model(model, "numpy").limit == 40


def test_masks_of_users_are_run_up_to_4096_frames() -> None:
    message = refusal(attention_example(opened_late)[0])
    assert "keeps one pattern up to frame 4096, but not provably beyond it" in message
    assert "max_context=4096 or less" in message


@with_short_runs
def test_a_context_beyond_the_runs_is_refused() -> None:
    assert "not provably beyond it" in refusal(attention_example(opened_late)[0], longest_run() + 900)


def clamped_chunks(graph: AttentionBuilder, scores: str) -> str:
    """Attend from ``max(chunk - 2, 0) * 4`` to ``min((chunk + 1) * 4, T)``, as recognisers write it."""
    rows, columns = graph.positions()
    chunk = graph.add("Div", rows, graph.number(4))
    first = graph.add(
        "Mul", graph.add("Max", graph.add("Sub", chunk, graph.number(2)), graph.number(0)), graph.number(4)
    )
    end = graph.add(
        "Min", graph.add("Mul", graph.add("Add", chunk, graph.number(1)), graph.number(4)), graph.frames()
    )
    visible = graph.add("And", graph.add("GreaterOrEqual", columns, first), graph.add("Less", columns, end))
    return add_mask(graph, scores, visible)


def rounded_chunks(graph: AttentionBuilder, scores: str) -> str:
    """Quotients in floats, as ``torch.div(rounding_mode="trunc")`` is exported."""

    def chunk(steps: str) -> str:
        quotient = graph.add("Div", graph.add("Cast", steps, to=1), graph.constant(4.0))
        size = graph.add("Floor", graph.add("Abs", quotient))
        return graph.add("Cast", graph.add("Mul", size, graph.add("Sign", quotient)), to=7)

    rows, columns = map(chunk, graph.positions())
    return add_mask(graph, scores, graph.is_between(graph.add("Sub", rows, columns), 0, 2))


def counted_positions(graph: AttentionBuilder, scores: str) -> str:
    """Positions as running sums of ones."""
    counted = graph.add("Expand", graph.number(1), graph.add("Unsqueeze", graph.frames(), graph.integers(0)))
    steps = graph.add("CumSum", counted, graph.number(0))
    distances = graph.add(
        "Sub",
        graph.add("Unsqueeze", steps, graph.integers(1)),
        graph.add("Unsqueeze", steps, graph.integers(0)),
    )
    return add_mask(graph, scores, graph.is_between(distances, 0, 5))


def by_remainder(graph: AttentionBuilder, scores: str) -> str:
    """Frames of one chunk have the same position less its remainder."""
    rows, columns = (
        graph.add("Sub", steps, graph.add("Mod", steps, graph.number(5))) for steps in graph.positions()
    )
    return add_mask(graph, scores, graph.add("Equal", rows, columns))


def of_pairs(graph: AttentionBuilder, numbers: str, position: str) -> str:
    """Return the row or column of each pair of frames, looked up in ``numbers`` [1, T]."""
    index = [graph.add("Expand", x, graph.square()) for x in (graph.constant([[0]], np.int64), position)]
    places = [graph.add("Unsqueeze", x, graph.integers(2)) for x in index]
    return graph.add("GatherND", numbers, graph.add("Concat", *places, axis=-1))


def looked_up_chunks(graph: AttentionBuilder, scores: str) -> str:
    """A function of each pair: whether both have the same chunk."""
    rows, columns = graph.positions()
    chunk = graph.add("Div", columns, graph.number(4))
    return add_mask(
        graph, scores, graph.add("Equal", of_pairs(graph, chunk, rows), of_pairs(graph, chunk, columns))
    )


def packed_sequence(graph: AttentionBuilder, scores: str) -> str:
    """A window inside of each sequence, of which there is one: positions never start again."""
    rows, columns = graph.positions()
    axis, begin = graph.integers(1), graph.integers(0)
    first = graph.add("Slice", columns, begin, graph.integers(1), axis)
    joined = graph.add("Concat", graph.add("Sub", first, graph.number(1)), columns, axis=1)
    last = graph.add("Unsqueeze", graph.frames(), begin)
    step = graph.add("Sub", columns, graph.add("Slice", joined, begin, last, axis))
    begins = graph.add("Cast", graph.add("Not", graph.add("Equal", step, graph.number(1))), to=7)
    sequence = graph.add("CumSum", begins, graph.number(1))
    same = graph.add("Equal", of_pairs(graph, sequence, rows), of_pairs(graph, sequence, columns))
    return add_mask(graph, scores, graph.add("And", same, graph.is_between(graph.distances(), 0, 6)))


def by_bucket(graph: AttentionBuilder, scores: str) -> str:
    """A bias by the distance: one for each up to 4, one for each doubling beyond, as T5 has them."""
    distances = graph.add("Max", graph.distances(), graph.number(0))
    doublings = graph.add("Log", graph.add("Div", graph.add("Cast", distances, to=1), graph.constant(4.0)))
    far = graph.add(
        "Add", graph.add("Cast", graph.add("Mul", doublings, graph.constant(1.5)), to=7), graph.number(4)
    )
    near = graph.add("Less", distances, graph.number(4))
    bucket = graph.add("Where", near, distances, graph.add("Min", far, graph.number(7)))
    bias = graph.add("Gather", graph.constant(floats("buckets", 8, HEADS)), bucket, axis=0)
    bias = graph.add("Unsqueeze", graph.add("Transpose", bias, perm=[2, 0, 1]), graph.integers(0))
    return add_mask(graph, graph.add("Add", scores, bias), graph.is_between(graph.distances(), 0, 11))


@pytest.mark.parametrize(
    ("mask", "band"),
    [
        (by_bucket, (11, 0, 1)),
        (looked_up_chunks, (3, 3, 4)),
        (packed_sequence, (6, 0, 1)),
        (clamped_chunks, (11, 3, 4)),
        (rounded_chunks, (11, 3, 4)),
        (counted_positions, (5, 0, 1)),
        (by_remainder, (4, 4, 5)),
    ],
)
def test_masks_proved_for_all_lengths_stream_without_a_limit(mask: Mask, band: tuple[int, int, int]) -> None:
    proto, feeds = attention_example(mask)
    op = band_of(proto)
    assert (op.back, op.ahead, op.period) == band
    assert compile_model(assert_streams_agree(proto, feeds, 1, pulses=(4,)), "numpy").limit is None


def test_positions_of_a_faster_stream_are_proved() -> None:
    """The first of two positions for each frame of the input exists where a frame does."""
    proto, feeds = upsampled_attention(packed_sequence)
    assert (
        compile_model(assert_streams_agree(proto, feeds, 1, pulses=(2,), lengths=(1, 5, 13)), "numpy").limit
        is None
    )
