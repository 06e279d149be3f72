"""Nodes that cannot stream are refused by name, all at once, with the reason and a way out."""

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from onnx import TensorProto, helper

import pulse
from pulse.dim import TDim
from pulse.errors import PulseError, PulsifyError, Refusal
from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.concat import Concat
from pulse.ops.matmul import MatMul
from pulse.ops.norm import Softmax
from pulse.ops.op import Op
from pulse.ops.pool import Pool
from pulse.ops.reduce import Reduce
from pulse.ops.resize import Interpolate
from pulse.ops.resize_sampling import Coordinates, Sampling
from pulse.ops.shape import Transpose
from pulse.ops.slice import Slice
from pulse.pulsify.driver import pulsify
from tests.pulse.model_builder import ModelBuilder


class Strange(Op):
    """A user's op that declares nothing about streams."""

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [inputs[0]]


def refusals_of(builder: ModelBuilder, *outputs: OutletId) -> dict[str, Refusal]:
    """The refusals by node; each is complete and part of the message."""
    with pytest.raises(PulsifyError, match="refused") as caught:
        pulsify(builder.model(*outputs))
    for refusal in caught.value.refusals:
        assert str(refusal) in str(caught.value)
        assert refusal.node in str(refusal)
        assert refusal.op in str(refusal)
        assert refusal.relation in str(refusal)
        assert refusal.reason
        assert refusal.advice
    return {refusal.node: refusal for refusal in caught.value.refusals}


def test_every_failing_node_is_in_one_error() -> None:
    """Seven that fail, one that fails only because of another, one that is fine."""
    builder = ModelBuilder(x="1,2,T")
    x = builder["x"]
    length = builder.length(x)
    soft = builder.add("soft", Softmax(2), x)
    last = builder.add("last", Slice(2, length - 2, length), x)
    refusals = refusals_of(
        builder,
        soft,
        builder.apply("relu", soft, name="dependent"),
        builder.add("mean", Reduce("mean", (2,), True), x),
        builder.add("back", Slice(2, length - 1, TDim.of(-1), -1), x),
        builder.add("half", Slice(2, length // 2, length), x),
        builder.add("twice", Concat(2), x, x),
        builder.add("attention", MatMul(), builder.add("turn", Transpose((0, 2, 1)), x), x),
        builder.conv(last, 2, name="after"),
        builder.add("strange", Strange(), x),
        builder.apply("relu", x, name="fine"),
    )
    assert {name: (r.op, r.axis, r.relation) for name, r in refusals.items()} == {
        "soft": ("softmax", 2, "whole"),
        "mean": ("reduce_mean", 2, "whole"),
        "back": ("Slice", 2, "whole"),
        "half": ("Slice", 2, "whole"),
        "twice": ("Concat", 2, "whole"),
        "attention": ("MatMul", 1, "whole"),
        "after": ("Conv", 2, "window"),
        "strange": ("Strange", 2, "whole"),
    }
    assert "divides by a sum over the whole stream" in refusals["soft"].reason
    assert "pooling window" in refusals["mean"].advice
    assert "slice forwards" in refusals["back"].advice
    assert "T/2" in refusals["half"].reason
    assert "begins where the first one ends" in refusals["twice"].reason
    assert "every frame of one operand meets every frame of the other" in refusals["attention"].reason
    assert "has no rule" in refusals["strange"].reason


def test_the_message_counts_and_names_the_stream() -> None:
    """The model has one node that is refused, then two."""
    builder = ModelBuilder(x="1,2,T")
    a = builder.add("a", Softmax(2), builder["x"])
    with pytest.raises(PulsifyError, match="builder cannot be streamed over T: 1 node refused\n  a "):
        pulsify(builder.model(a))
    with pytest.raises(PulsifyError, match="over T: 2 nodes refused"):
        pulsify(builder.model(a, builder.add("b", Softmax(2), builder["x"])))


def test_frames_known_only_at_the_end_may_not_meet_others() -> None:
    """The last frames may be changed frame by frame, but not looked at together or joined to the stream."""
    builder = ModelBuilder(x="1,2,T")
    length = builder.length(builder["x"])
    last = builder.add("last", Slice(2, length - 2, length), builder["x"])
    assert pulsify(builder.model(builder["x"], builder.apply("tanh", last))).outputs[1].rate == 0
    refusals = refusals_of(
        builder,
        builder["x"],
        builder.pool(last, "max", 2, name="window"),
        builder.pad(last, (1, 0), name="ends"),
        builder.apply(
            "add",
            builder.apply("relu", last),
            builder.cut(builder["x"], 0, end=TDim.of(2), name="first"),
            name="met",
        ),
    )
    assert set(refusals) == {"window", "ends", "met"}
    assert all("only when the stream has ended" in refusal.reason for refusal in refusals.values())
    assert all("output of the model" in refusal.advice for refusal in refusals.values())


def test_streams_that_meet_on_different_axes_are_refused() -> None:
    """The model is an outer sum over time."""
    builder = ModelBuilder(x="1,1,T", y="1,T,1")
    refusals = refusals_of(builder, builder.apply("add", builder["x"], builder["y"], name="outer"))
    assert "different axes [1, 2]" in refusals["outer"].reason
    assert "transpose" in refusals["outer"].advice


def test_streams_of_different_rates_that_meet_are_refused() -> None:
    """Lengths that are equal for no long stream at all, or only by an assumption."""
    builder = ModelBuilder(x="1,2,T", y="1,2,2*T")
    refusals = refusals_of(builder, builder.apply("add", builder["x"], builder["y"], name="met"))
    assert "different rates 1, 2" in refusals["met"].reason
    assert "resample" in refusals["met"].advice


def test_values_that_depend_on_the_stream_length_are_refused() -> None:
    """Padding at the start, and constants made of lengths."""
    builder = ModelBuilder(x="1,2,T")
    length = builder.length(builder["x"])
    padded = builder.add("pool", Pool("max", (2,), (1,), (1,), ((length, TDim.of(0)),)), builder["x"])
    sizes = builder.constant(np.array([length], dtype=object), "sizes")
    refusals = refusals_of(builder, padded, sizes)
    assert "before the first frame, T," in refusals["pool"].reason
    assert "depends on the length" in refusals["sizes"].reason


def test_symbols_that_cannot_be_time_are_refused() -> None:
    """The model has no symbol or two, a symbol is on two axes or on one that shrinks, or a name is unknown."""
    with pytest.raises(PulseError, match=r"no input has a symbolic dim.*inputs="):
        pulsify((builder := ModelBuilder(x="1,1,4")).model(builder.apply("relu", builder["x"])))
    builder_of_two = ModelBuilder(x="1,T,U")
    model = builder_of_two.model(builder_of_two.apply("relu", builder_of_two["x"]))
    with pytest.raises(PulseError, match=r"2 symbols \(T, U\).*symbol="):
        pulsify(model)
    with pytest.raises(PulseError, match="unknown symbol 'Z'; choose one of T, U"):
        pulsify(model, symbol="Z")
    with pytest.raises(PulseError, match=r"the stream is a symbol or its name, not 160.*pulse=160"):
        pulsify(model, symbol=160)  # pyright: ignore[reportArgumentType]
    with pytest.raises(PulsifyError, match=r"other symbols besides T: U; .*inputs=\{\"x\": \"1,T,1\"\}"):
        pulsify(model, symbol="T")
    both = ModelBuilder(x="1,T,T")
    assert (
        refusals_of(both, both.apply("relu", both["x"]))["x"].reason == "T is on several of its axes: [1, 2]"
    )
    back = ModelBuilder(x="1,2,5-T")
    assert "does not grow with T" in refusals_of(back, back.apply("relu", back["x"]))["x"].reason


def test_the_advice_on_symbols_works() -> None:
    """A batch that the file leaves open is fixed by ``inputs=``; an unused input is ignored by ``symbol=``."""
    shape = ["C", 2, "T"]
    proto = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            "two",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    with pytest.raises(PulseError, match=r"2 symbols \(C, T\)"):
        pulse.load(proto).analyse().pulsify()
    with pytest.raises(PulsifyError, match=r'other symbols besides T: C; .*inputs=\{"x": "1,2,T"\}'):
        pulse.load(proto).analyse().pulsify(symbol="T")
    fixed = pulse.load(proto, inputs={"x": "3,2,T"}).analyse().pulsify(pulse=4)
    assert fixed.outputs[0].shape == (3, 2, 4)
    builder = ModelBuilder(x="1,2,T", y="1,2,U")
    model = pulsify(builder.model(builder.apply("relu", builder["x"])), symbol="T", pulse=2)
    assert [port.name for port in model.inputs] == ["x"]
    assert (
        pulsify(
            builder.model(builder.apply("relu", builder["y"], name="other")), symbol=builder.scope.symbol("U")
        ).symbol.name
        == "U"
    )


def test_a_model_of_constants_is_refused() -> None:
    builder = ModelBuilder(x="1,2,T")
    with pytest.raises(PulsifyError, match="no input streams over T"):
        pulsify(builder.model(builder.constant(np.ones(3, np.float32))))


def test_refusal_of_a_pulse_lists_suitable_ones() -> None:
    """The node that asks for it, the multiples on both sides; the first multiple if none is below."""
    builder = ModelBuilder(x="1,2,T")
    third = builder.conv(builder["x"], 3, stride=3, name="third")
    typed = builder.model(builder.conv(third, 2, stride=2, name="sixth"))
    assert pulsify(typed).pulse == 6
    with pytest.raises(PulsifyError, match=r"third \(Conv\): pulse 100 .*multiple of 6: use 96 or 102"):
        pulsify(typed, pulse=100)
    with pytest.raises(PulsifyError, match=r"sixth \(Conv\): pulse 9 makes 3/2 frames .* use 6 or 12"):
        pulsify(typed, pulse=9)
    with pytest.raises(PulsifyError, match=r"use 6$"):
        pulsify(typed, pulse=4)
    for bad in (0, -6):
        with pytest.raises(PulsifyError, match=f"pulse={bad} is not a positive number of frames.* 6"):
            pulsify(typed, pulse=bad)


def test_inputs_that_do_not_determine_the_length_are_refused() -> None:
    """Frames of an input must prove how long the stream is."""
    builder = ModelBuilder(x="1,2,T+3")
    with pytest.raises(PulsifyError, match=r"do not prove that there are T frames"):
        pulsify(builder.model(builder.apply("relu", builder["x"])))


def lines_between_quarters(frames: str, quarter: str, coordinates: Coordinates) -> TypedModel:
    """Straight lines between every fourth frame, as many as half of the frames."""
    builder = ModelBuilder(x=f"1,2,{frames}")
    every_fourth = builder.add("fourth", Slice(2, TDim.of(0), 4 * builder.dim(quarter), 4), builder["x"])
    lines = Interpolate(2, builder.dim(frames) // 2, None, Sampling(coordinates, None))
    return builder.model(builder.add("y", lines, every_fourth))


def test_a_number_of_frames_that_would_suit_is_named() -> None:
    """Lines from T/4 to T/2 frames stream if T is always a multiple of 4."""
    with pytest.raises(PulsifyError, match="its factor, T/2 frames of T/4, depends") as caught:
        lines_between_quarters("T", "T/4", "half_pixel").pulsify()
    error = caught.value
    assert error.advice == 'it streams if T is always a multiple of 4: inputs={"x": "1,2,4*(T/4)"}'
    assert str(error).endswith(error.advice)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    pulse.verify(lines_between_quarters("4*(T/4)", "T/4", "half_pixel"), pulse=8).require()


def test_no_number_is_named_where_none_helps() -> None:
    with pytest.raises(PulsifyError, match="its factor, T/2 frames of T/4, depends") as caught:
        lines_between_quarters("T", "T/4", "align_corners").pulsify()
    assert not caught.value.advice
