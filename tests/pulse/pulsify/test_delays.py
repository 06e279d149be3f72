"""Delay, rate, length and buffers of pulsed models, worked out by hand for each kind of op."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from pulse.api import verify
from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.models import PulsedModel
from pulse.ops.op import PadMode
from pulse.ops.slice import Slice
from pulse.ops.time import Delay, LastFrames
from pulse.ops.time_position import Positions, Range, TableRows
from pulse.pulsify.driver import pulsify
from tests.pulse.model_builder import NONE, ModelBuilder, Pair

Build = Callable[[ModelBuilder, OutletId], OutletId]


@dataclass(frozen=True)
class DelayCase:
    """A model of the input x [1, 2, T] and what is expected of its output.

    buffers   delay, overlap and bytes of each delay buffer, in any order; a frame of x has 8 bytes
    """

    name: str
    build: Build
    pulse: int
    delay: int
    rate: Fraction | int
    length: str
    buffers: list[tuple[int, int, int]]


def conv(kernel: int, pads: Pair = NONE, stride: int = 1, dilation: int = 1) -> Build:
    return lambda builder, x: builder.conv(x, kernel, pads, stride, dilation)


def cut(start: int, step: int = 1) -> Build:
    return lambda builder, x: builder.cut(x, start, step)


def deconv(kernel: int, stride: int, pads: Pair = NONE, extra: int = 0, dilation: int = 1) -> Build:
    return lambda builder, x: builder.deconv(x, kernel, stride, pads, extra, dilation)


def pad(before: int, after: int, mode: PadMode = "constant") -> Build:
    return lambda builder, x: builder.pad(x, (before, after), mode)


def causal_chain(builder: ModelBuilder, x: OutletId) -> OutletId:
    x = builder.apply("tanh", builder.apply("relu", builder.pad(x, (4, 0), fill=0.5)))
    return builder.conv(x, 3, dilation=2)


def causal_stack(builder: ModelBuilder, x: OutletId) -> OutletId:
    for number in range(3):
        x = builder.apply("relu", builder.conv(builder.pad(x, (2, 0)), 3, name=f"conv{number}"))
    return x


def residual(builder: ModelBuilder, x: OutletId) -> OutletId:
    """Add wires of the offsets 0, 1 and 2."""
    narrow, wide = builder.conv(x, 3, (1, 1), name="narrow"), builder.conv(x, 5, (2, 2), name="wide")
    return builder.apply("sum", x, narrow, wide)


def down_and_up(builder: ModelBuilder, x: OutletId) -> OutletId:
    """A U-net step: the skip waits for the branch at the low rate."""
    low = builder.conv(x, 4, (1, 1), stride=2, name="down")
    high = builder.deconv(low, 2, 2, name="up")
    return builder.apply("add", builder.cut(high, 0, end=builder.length(x)), x)


def average(kernel: int, pads: Pair, stride: int = 1, count: bool = False) -> Build:
    return lambda builder, x: builder.pool(x, "average", kernel, pads, stride, count)


def position_after(pads: Pair) -> Build:
    def build(builder: ModelBuilder, x: OutletId) -> OutletId:
        y = builder.conv(x, 3, pads)
        steps = builder.add("steps", Range(1.0, 0.5, builder.length(y), np.dtype(np.float32)))
        return builder.apply("add", y, steps)

    return build


def position_at_a_prefix(builder: ModelBuilder, x: OutletId) -> OutletId:
    padded = builder.pad(x, (2, 0))
    steps = builder.add("steps", Range(1.0, 0.5, builder.length(padded), np.dtype(np.float32)))
    return builder.conv(builder.apply("add", padded, steps), 3)


def table_at(prefix: bool) -> Build:
    def build(builder: ModelBuilder, x: OutletId) -> OutletId:
        y = builder.pad(x, (2, 0)) if prefix else builder.conv(x, 3, (1, 1))
        table = builder.constant(builder.taps(1, 2, 200), "table")
        rows = builder.add("rows", Slice(2, TDim.of(3), builder.length(y) + 3), table)
        total = builder.apply("add", y, rows)
        return builder.conv(total, 3, name="after") if prefix else total

    return build


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
CASES = [
    DelayCase("one tap", conv(1), 4, 0, 1, "T", []),
    DelayCase("valid conv", conv(3), 4, 2, 1, "T-2", [(0, 2, 16)]),
    DelayCase("valid conv, pulse 1", conv(3), 1, 2, 1, "T-2", [(0, 2, 16)]),
    DelayCase("same conv", conv(3, (1, 1)), 4, 1, 1, "T", [(0, 2, 16)]),
    DelayCase("causal conv", conv(3, (2, 0)), 4, 0, 1, "T", [(0, 2, 16)]),
    DelayCase("anticausal conv", conv(3, (0, 2)), 4, 2, 1, "T", [(0, 2, 16)]),
    DelayCase("padded by more than it sees", conv(3, (5, 0)), 4, 0, 1, "T+3", [(0, 2, 16), (3, 0, 24)]),
    DelayCase("dilated conv", conv(3, dilation=4), 4, 8, 1, "T-8", [(0, 8, 64)]),
    DelayCase("dilated causal conv", conv(3, (8, 0), dilation=4), 4, 0, 1, "T", [(0, 8, 64)]),
    DelayCase("strided conv", conv(3, stride=2), 4, 1, HALF, "(T-3)/2+1", [(0, 2, 16)]),
    DelayCase("strided same conv", conv(3, (1, 1), 2), 4, 0, HALF, "(T-1)/2+1", [(0, 1, 8)]),
    DelayCase("stride as long as the kernel", conv(4, stride=4), 8, 0, Fraction(1, 4), "(T-4)/4+1", []),
    DelayCase("stride longer than the kernel", conv(1, stride=3), 3, 0, THIRD, "(T-1)/3+1", []),
    DelayCase("slice from 1", cut(1), 4, 1, 1, "max(0,T-1)", []),
    DelayCase("slice from 9", cut(9), 4, 9, 1, "max(0,T-9)", []),
    DelayCase("every second", cut(0, 2), 4, 0, HALF, "(T+1)/2", []),
    DelayCase("every second from 1", cut(1, 2), 4, 0, HALF, "(max(0,T-1)+1)/2", []),
    DelayCase("every third from 5", cut(5, 3), 3, 1, THIRD, "(max(0,T-5)+2)/3", []),
    DelayCase("deconv without overlap", deconv(2, 2), 4, 0, 2, "2*T", []),
    DelayCase("deconv with overlap", deconv(4, 2), 4, 0, 2, "2*T+2", [(0, 1, 8)]),
    DelayCase("deconv cut at its ends", deconv(4, 2, (1, 1)), 4, 1, 2, "2*T", [(0, 1, 8)]),
    DelayCase("deconv with gaps", deconv(1, 2), 4, 0, 2, "2*T-1", []),
    DelayCase("deconv with output padding", deconv(3, 2, (1, 1), 1), 4, 1, 2, "2*T", [(0, 1, 8)]),
    DelayCase("deconv of stride 1", deconv(3, 1, (1, 1)), 4, 1, 1, "T", [(0, 2, 16)]),
    DelayCase("dilated deconv", deconv(2, 1, dilation=3), 4, 0, 1, "T+3", [(0, 3, 24)]),
    DelayCase("constants at both ends", lambda builder, x: builder.ends(x, 2, 3), 4, 0, 1, "T+5", [(2, 0, 16)]),
    DelayCase("constants at the end", lambda builder, x: builder.ends(x, 0, 3), 4, 0, 1, "T+3", []),
    DelayCase("zeros at the start", pad(2, 0), 4, 0, 1, "T+2", [(2, 0, 16)]),
    DelayCase("zeros at both ends", pad(2, 3), 1, 0, 1, "T+5", [(2, 0, 16)]),
    DelayCase("zeros at the end", pad(0, 3), 4, 0, 1, "T+3", []),
    DelayCase("first frame repeated", pad(2, 0, "edge"), 4, 0, 1, "T+2", [(0, 2, 16)]),
    DelayCase("ends repeated", pad(2, 3, "edge"), 1, 0, 1, "T+5", [(0, 5, 40)]),
    DelayCase("mirrored, pulse 1", pad(2, 0, "reflect"), 1, 2, 1, "T+2", [(0, 4, 32)]),
    DelayCase("mirrored, pulse 2", pad(2, 0, "reflect"), 2, 2, 1, "T+2", [(0, 4, 32)]),
    DelayCase("mirrored, long pulse", pad(2, 0, "reflect"), 4, 0, 1, "T+2", [(0, 2, 16)]),
    DelayCase("mirrored with the border, pulse 1", pad(2, 0, "symmetric"), 1, 1, 1, "T+2", [(0, 3, 24)]),
    DelayCase("mirrored at the end", pad(0, 3, "reflect"), 4, 0, 1, "T+3", [(0, 6, 48)]),
    DelayCase("prefix through functions", causal_chain, 4, 0, 1, "T", [(0, 4, 32)]),
    DelayCase("causal stack", causal_stack, 4, 0, 1, "T", [(0, 2, 16)] * 3),
    DelayCase(
        "residual", residual, 4, 2, 1, "T", [(0, 2, 16), (0, 4, 32), (2, 0, 16), (1, 0, 8)],
    ),
    DelayCase("down and up", down_and_up, 4, 2, 1, "T", [(0, 3, 24), (2, 0, 16)]),
    DelayCase("sum of three", lambda builder, x: builder.pool(x, "sum", 3), 4, 2, 1, "T-2", [(0, 2, 16)]),
    DelayCase("padded maximum", lambda builder, x: builder.pool(x, "max", 3, (1, 1)), 4, 1, 1, "T", [(0, 2, 16)]),
    DelayCase("average, padding not counted", average(3, (1, 1)), 4, 1, 1, "T", [(0, 2, 16), (0, 2, 8)]),
    DelayCase("average, padding counted", average(3, (1, 1), 2, True), 4, 0, HALF, "(T-1)/2+1", [(0, 1, 8)]),
    DelayCase("range at no delay", position_after((2, 0)), 4, 0, 1, "T", [(0, 2, 16)]),
    DelayCase("range at a delay", position_after((1, 1)), 4, 1, 1, "T", [(0, 2, 16)]),
    DelayCase("range at a prefix", position_at_a_prefix, 4, 0, 1, "T", [(0, 2, 16)]),
    DelayCase("table at a delay", table_at(False), 4, 1, 1, "T", [(0, 2, 16)]),
    DelayCase("table at a prefix", table_at(True), 4, 0, 1, "T", [(0, 2, 16)]),
]  # fmt: skip


def delays(model: PulsedModel) -> list[tuple[int, int, int]]:
    """Delay, overlap and bytes of every delay buffer."""
    return sorted((op.delay, op.overlap, size) for _, op, size in model.buffers() if isinstance(op, Delay))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_delay_rate_length_and_buffers_match_hand_calculation(case: DelayCase) -> None:
    builder = ModelBuilder(x="1,2,T")
    typed = builder.model(case.build(builder, builder["x"]))
    model = pulsify(typed, pulse=case.pulse)
    (port,) = model.outputs
    assert (port.delay, port.rate) == (case.delay, case.rate)
    expected = builder.dim(case.length)
    assert all(
        max(0, port.length.eval({model.symbol: n})) == max(0, expected.eval({model.symbol: n}))
        for n in range(60)
    )
    assert port.frames == case.rate * case.pulse
    assert delays(model) == sorted(case.buffers)
    assert verify(typed, case.pulse, lengths=[3, 7, 30], backend="numpy").require().equal


def test_free_wires_are_made_at_the_offset_of_their_reader() -> None:
    """A reader at a delay and a reader at a prefix have two sources, and no buffer."""
    builder = ModelBuilder(x="1,2,T")
    x = builder["x"]
    steps = builder.add("steps", Range(0.0, 1.0, builder.length(x), np.dtype(np.float32)))
    table = builder.constant(builder.taps(1, 2, 90), "table")
    rows = builder.add("rows", Slice(2, TDim.of(0), builder.length(x)), table)
    late = builder.apply("add", builder.conv(x, 5, (0, 4), name="late"), steps)
    typed = builder.model(late, builder.apply("add", x, builder.apply("mul", rows, steps, name="product")))
    model = pulsify(typed, pulse=2)
    ops = [node.op for node in model.graph.nodes]
    assert sorted(op.offset for op in ops if isinstance(op, Positions)) == [0, 4]
    assert [op.offset for op in ops if isinstance(op, TableRows)] == [0]
    assert delays(model) == [(0, 4, 32)]
    assert verify(typed, 2, lengths=[5, 12], backend="numpy").require().equal


def test_the_last_frames_wait_for_the_end() -> None:
    """An output of constant size, known at the flush; its memory is its own."""
    builder = ModelBuilder(x="1,2,T")
    y = builder.conv(builder["x"], 3, (1, 1))
    length = builder.length(y)
    typed = builder.model(y, builder.add("last", Slice(2, length - 5, length), y))
    model = pulsify(typed, pulse=4)
    last = model.port("last")
    assert (last.shape, last.axis, last.rate, last.streams) == ((1, 2, 5), 2, 0, False)
    ((name, op, size),) = [buffer for buffer in model.buffers() if isinstance(buffer[1], LastFrames)]
    assert (name, size, op.frames, op.offset) == ("last", 40, 5, 1)
    assert str(last) == "last: 1,2,5,f32, axis 2, 5 frames at the end"
    assert verify(typed, 4, lengths=[5, 6, 8, 21], backend="numpy").require().equal


def test_inputs_of_several_rates_have_pulses_of_their_own() -> None:
    """Each input has its own pulses; what does not stream is given once."""
    builder = ModelBuilder(x="1,2,T", y="1,2,2*T", gain="1,2,1")
    low = builder.conv(builder["y"], 2, stride=2)
    typed = builder.model(builder.apply("mul", builder.apply("add", low, builder["x"]), builder["gain"]))
    model = pulsify(typed, pulse=3)
    assert [(port.name, port.frames, port.rate, port.streams) for port in model.inputs] == [
        ("x", 3, 1, True),
        ("y", 6, 2, True),
        ("gain", 0, 0, False),
    ]
    assert model.outputs[0].delay == 0
    assert delays(model) == []
    assert verify(typed, 3, lengths=[1, 3, 10], backend="numpy").require().equal


def test_a_lead_that_depends_on_a_side_input_becomes_a_delay() -> None:
    """The frames before the stream are unknown when the model is compiled."""
    builder = ModelBuilder(x="1,2,T", gain="1,2,1")
    typed = builder.model(
        builder.conv(builder.apply("mul", builder.pad(builder["x"], (2, 0), fill=1.0), builder["gain"]), 3)
    )
    model = pulsify(typed, pulse=4)
    assert model.outputs[0].delay == 2
    assert delays(model) == [(0, 2, 16), (2, 0, 16)]
    assert verify(typed, 4, lengths=[1, 4, 11], backend="numpy").require().equal


def several_rates() -> ModelBuilder:
    builder = ModelBuilder(x="1,2,T")
    x = builder["x"]
    wide = builder.conv(x, 9, (4, 4), name="wide")
    builder.graph.set_outputs(
        [
            builder.conv(x, 3, (1, 1), name="narrow"),
            builder.deconv(wide, 2, 2, name="up"),
            builder.conv(x, 2, stride=2, name="down"),
            x,
        ]
    )
    return builder


def test_align_delays_all_outputs_equally() -> None:
    """Aligned, every delay is as long in time as the longest."""
    builder = several_rates()
    typed = builder.model(*builder.graph.outputs)
    plain = pulsify(typed, pulse=4)
    assert {port.name: port.delay for port in plain.outputs} == {"narrow": 1, "up": 8, "down": 0, "x": 0}
    aligned = pulsify(typed, pulse=4, align=True)
    assert {port.name: port.delay for port in aligned.outputs} == {"narrow": 4, "up": 8, "down": 2, "x": 4}
    assert {port.delay / port.rate for port in aligned.outputs} == {4}
    assert {delay for delay, overlap, _ in delays(aligned) if overlap == 0} == {2, 3, 4}


def test_align_rounds_up_where_rates_do_not_meet() -> None:
    """A moment between two frames of a slower output is its next frame."""
    builder = ModelBuilder(x="1,2,T")
    typed = builder.model(
        builder.conv(builder["x"], 4, (0, 3), name="fast"),
        builder.conv(builder["x"], 2, stride=2, name="slow"),
    )
    model = pulsify(typed, pulse=2, align=True)
    assert {port.name: port.delay for port in model.outputs} == {"fast": 3, "slow": 2}


def test_outputs_may_be_inputs_constants_or_one_wire() -> None:
    builder = ModelBuilder(x="1,2,T", side="1,2,1")
    fixed = builder.constant(np.arange(3, dtype=np.float32))
    y = builder.apply("relu", builder["x"])
    typed = builder.model(
        builder["x"], y, y, builder["side"], fixed, names=["same", "a", "b", "given", "fixed"]
    )
    model = pulsify(typed, pulse=4)
    assert [(port.name, port.shape, port.streams) for port in model.outputs] == [
        ("same", (1, 2, 4), True),
        ("a", (1, 2, 4), True),
        ("b", (1, 2, 4), True),
        ("given", (1, 2, 1), False),
        ("fixed", (3,), False),
    ]
    assert "no stream" in str(model.port("given"))
    assert verify(typed, 4, lengths=[1, 9]).require().equal


def test_a_model_that_declutters_to_its_input_streams() -> None:
    builder = ModelBuilder(x="1,2,T")
    typed = builder.model(
        builder.apply("neg", builder.apply("neg", builder.cut(builder["x"], 0)), name="twice"), names=["y"]
    ).declutter()
    model = pulsify(typed, pulse=4)
    assert (model.outputs[0].name, model.outputs[0].delay, model.buffers()) == ("y", 0, [])
    assert verify(typed, 4, lengths=[1, 9]).require().equal


def test_the_smallest_pulse_is_found() -> None:
    """Rates 1/2 and 1/3 meet at 6."""
    builder = ModelBuilder(x="1,2,T")
    typed = builder.model(
        builder.conv(builder["x"], 2, stride=2, name="half"),
        builder.conv(builder["x"], 3, stride=3, name="third"),
    )
    assert pulsify(typed).pulse == 6
    assert pulsify(typed, pulse=12).outputs[0].frames == 6


def test_readers_that_need_the_same_frames_share_a_buffer() -> None:
    """Two kernels of one reach share the history of their input."""
    builder = ModelBuilder(x="1,2,T")
    typed = builder.model(
        builder.apply("add", builder.conv(builder["x"], 3, name="a"), builder.conv(builder["x"], 3, name="b"))
    )
    assert delays(pulsify(typed, pulse=4)) == [(0, 2, 16)]
