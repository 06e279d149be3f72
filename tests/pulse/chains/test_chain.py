"""Chains: the joined model is what its parts give one after the other, offline, as a stream and as one file."""

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse import Chunking, Stage, chain, front
from pulse.program.whole_stream import stream_whole
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.pulse.chunks.models import Array, F, loop, pieces


def conv(
    taps: int, stride: int = 1, symbol: str = "T", pads: tuple[int, int] = (0, 0), names: str = "x y"
) -> ModelProto:
    """Sound [1, 1, T] through a filter."""
    x, y = names.split()
    return models.build(
        [node("Conv", f"{x} w", y, strides=[stride], pads=list(pads))],
        {x: [1, 1, symbol]},
        {y: [1, 1, None]},
        {"w": normal_noise(1, 1, taps, seed=taps)},
    )


def flat(symbol: str = "T") -> ModelProto:
    """Audio [1, 1, T] as [1, T], after a filter that looks ahead."""
    nodes = [node("Conv", "x w", "y", pads=[2, 2]), node("Squeeze", "y one", "z")]
    constants = {"w": normal_noise(1, 1, 5, seed=9), "one": np.array([1])}
    return models.build(nodes, {"x": [1, 1, symbol]}, {"z": [1, symbol]}, constants)


def assert_streams(model: pulse.TypedModel, *pulses: int) -> None:
    """The stream equals the offline model at every pulse; at the first one for all lengths that tell anything."""
    for frames in pulses:
        lengths = None if frames == pulses[0] else (1, 2, 7, 20, 61)
        pulse.verify(model, pulse=frames, lengths=lengths).require()


def offline(model: ModelProto, x: Array) -> Array:
    (y,) = pulse.load(model).analyse().run(x).values()
    return y


@pytest.mark.parametrize("symbol", ["T", "S"])
def test_lengths_follow_from_the_first_input(symbol: str) -> None:
    """Rates multiply; the second's symbol is an expression of the first's, whatever its name."""
    first, second = conv(5, 2), conv(3, 4, symbol, (1, 1))
    joined = chain(first, second)
    assert [str(fact) for fact in joined.inputs.values()] == ["1,1,T,f32"]
    for frames in (5, 18, 64):
        x = normal_noise(1, 1, frames, seed=frames)
        np.testing.assert_array_equal(joined.run(x)["y.1"], offline(second, offline(first, x)))
    assert_streams(joined, 8, 24)


def test_a_model_in_other_terms_keeps_its_assumptions() -> None:
    """S >= 0 of the second is T/2 - 1 >= 0 of the first's frames."""
    joined = chain(conv(4, 2), conv(9, symbol="S"))
    with pytest.raises(pulse.InputError, match=r"the model needs \(T>=2\), which T=1 does not satisfy"):
        joined.run(normal_noise(1, 1, 1))


@pytest.mark.parametrize(("frames", "results"), [(20, 1), (19, 0), (3, 0)])
def test_nine_frames_of_a_second_model_need_twenty_of_the_first(frames: int, results: int) -> None:
    """Shorter signals give no frames, offline as in a stream."""
    joined, x = chain(conv(4, 2), conv(9, symbol="S")), normal_noise(1, 1, frames)
    assert joined.run(x)["y.1"].shape == (1, 1, results)
    streamed = stream_whole(joined.pulsify(pulse=2).compile("numpy"), {"x": x})
    assert streamed["y.1"].shape == (1, 1, results)


@pytest.mark.parametrize("frames", [3, 8, 21, 40])
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_a_chain_of_chunk_models_agrees_with_its_authors_loop(frames: int, backend: str) -> None:
    """Its author's loop over what the first gives, offline and as a stream, the last chunk filled up with zeros."""
    joined = chain(flat("n"), models.cache_of_sound())
    x = normal_noise(1, 1, frames, seed=frames)
    chunks = [{"x": piece} for piece in pieces(offline(flat(), x), 1, 8)]
    steps = loop(models.cache_of_sound(), chunks, {"cache": ("cache_out", np.zeros((1, 4), F))})
    expected = np.concatenate([outputs["y"] for outputs in steps], 1)[:, :frames]
    np.testing.assert_allclose(joined.run(x)["y"], expected, 1e-5, 1e-5)
    program = joined.declutter().pulsify().compile(backend)
    np.testing.assert_allclose(stream_whole(program, {"x": x})["y"], expected, 1e-5, 1e-5)


def test_models_of_chunks_agree_in_chains() -> None:
    """The model of chunks comes first, last, or two have other sizes; pulses have several chunks."""
    assert_streams(chain(flat(), models.cache_of_sound()), 8, 16)
    assert_streams(chain(models.cache_of_sound(8), models.cache_of_sound(12)), 24)
    halved = pulse.load(models.half_context(), chunking=Chunking(context={"x": 4}))
    assert_streams(chain(models.cache_of_sound(8), halved), 8, 16)


def test_a_delay_of_a_model_of_chunks_drops_leading_frames() -> None:
    """Leading frames that its author drops; more calls make those that come late."""
    late = pulse.load(models.cache_of_sound(8), chunking=Chunking(delay={"y": 3}))
    joined = chain(late)
    x = normal_noise(1, 11)
    steps = loop(
        models.cache_of_sound(),
        [{"x": p} for p in pieces(x, 1, 8)],
        {"cache": ("cache_out", np.zeros((1, 4), F))},
    )
    expected = np.concatenate([outputs["y"] for outputs in steps], 1)[:, 3:14]
    np.testing.assert_allclose(joined.run(x)["y"], expected, 1e-5, 1e-5)
    assert_streams(joined, 8)


def test_a_file_written_in_pulses_joins_a_chain() -> None:
    """Its pulses are a scan: after another model, and before one; its delay is gone offline."""
    exported = pulse.stream(conv(5, 2, pads=(2, 2)), pulse=8).model.to_onnx()
    joined = chain(conv(3, 1, "S", (1, 1)), exported, conv(3, 1, "U"))
    x = normal_noise(1, 1, 50)
    expected = offline(conv(3), offline(conv(5, 2, pads=(2, 2)), offline(conv(3, pads=(1, 1)), x)))
    np.testing.assert_allclose(joined.run(x)[joined.graph.output_names[0]], expected, 1e-4, 1e-5)
    assert_streams(joined, 8, 16)


def test_the_file_of_a_chain_gives_the_same_stream() -> None:
    """All states are explicit; read again it is the same stream."""
    joined = chain(flat(), models.cache_of_sound())
    x = normal_noise(1, 1, 30)
    pulsed = joined.declutter().pulsify()
    again = pulse.load(pulsed.to_onnx()).analyse().pulsify()
    expected = stream_whole(pulsed.compile(), {"x": x})["y"]
    np.testing.assert_allclose(stream_whole(again.compile(), {"x": x})["y"], expected, 1e-5, 1e-5)


def test_wires_are_given_read_and_kept_by_name() -> None:
    """A mask made of a wire, and multiplied with that wire: names are given, read and kept."""
    product = models.build(
        [node("Mul", "mask sound", "y")], {"mask": [1, 1, "S"], "sound": [1, 1, "S"]}, {"y": [1, 1, "S"]}
    )
    joined = chain(
        Stage(conv(3, pads=(1, 1)), output_names=["filtered"]),
        Stage(conv(5, symbol="R", pads=(2, 2)), output_names={"y": "mask"}),
        Stage(product, reads={"mask": "mask", "sound": "filtered"}),
        outputs=["y", "mask"],
    )
    x = normal_noise(1, 1, 20)
    filtered = offline(conv(3, pads=(1, 1)), x)
    mask = offline(conv(5, pads=(2, 2)), filtered)
    outputs = joined.run(x)
    assert list(outputs) == ["y", "mask"]
    np.testing.assert_allclose(outputs["y"], mask * filtered, 1e-6)
    assert_streams(joined, 4)


def test_an_input_of_a_later_stage_is_one_of_the_chain() -> None:
    """An input that reads no wire is one of the chain; equal lengths are assumed where a model wants them."""
    added = models.build([node("Add", "a b", "y")], {"a": [1, 1, "S"], "b": [1, 1, "S"]}, {"y": [1, 1, "S"]})
    joined = chain(conv(3, pads=(1, 1)), Stage(added, reads={"a": "y"}))
    assert {name: str(fact) for name, fact in joined.inputs.items()} == {"x": "1,1,T,f32", "b": "1,1,T,f32"}
    assert_streams(joined, 4)


def test_the_given_models_stay_as_they_are() -> None:
    """A model may be in a chain twice, and in others."""
    part = pulse.load(conv(3, pads=(1, 1))).analyse()
    before = part.run(normal_noise(1, 1, 9))["y"]
    joined = chain(part, part, part)
    assert joined.graph.output_names == ["y.2"]
    assert_streams(joined, 2)
    np.testing.assert_array_equal(part.run(normal_noise(1, 1, 9))["y"], before)


def test_declared_inputs_are_read_by_name() -> None:
    """They have one symbol, and so one length; parts read them by name, in any order, and several times."""
    model = chain(
        Stage(front.frames(8, 4), reads=["far"], output_names=["echo"]),
        Stage(front.frames(8, 4), reads=["mic"], output_names=["near"]),
        Stage(
            models.build([node("Sub", "a b", "y")], {"a": [1, "S", 8], "b": [1, "S", 8]}, {"y": [1, "S", 8]}),
            reads=["near", "echo"],
        ),
        inputs={"mic": "1,T", "far": "1,T"},
    )
    assert list(model.inputs) == ["mic", "far"]
    mic, far = normal_noise(1, 40, seed=1), normal_noise(1, 40, seed=2)
    frames = front.frames(8, 4)
    (near,), (echo,) = (frames.run(sound).values() for sound in (mic, far))
    np.testing.assert_array_equal(model.run({"mic": mic, "far": far})["y"], near - echo)
    assert_streams(model, 8)
    with pytest.raises(pulse.PulseError, match="input far: no stage reads it"):
        chain(Stage(front.frames(8, 4), reads=["mic"]), inputs={"mic": "1,T", "far": "1,T"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: chain(), "a chain needs at least one model", id="no stage"),
        pytest.param(
            lambda: chain(conv(3), models.cache_of_sound()),
            r"y \(1,1,T-2,f32\) does not fit x \(1,T,f32\): .* 3 axes.* 2",
            id="another rank",
        ),
        pytest.param(
            lambda: chain(models.cache_of_sound(), models.gru()),
            r"stage 2 .*y \(1,T,f32\) does not fit x \(1,T,4,f32\)",
            id="another size",
        ),
        pytest.param(lambda: chain(models.counter(), conv(3)), "the types differ", id="another type"),
        pytest.param(
            lambda: chain(conv(3), Stage(conv(3), reads={"q": "y"})),
            "unknown input 'q'",
            id="unknown input",
        ),
        pytest.param(
            lambda: chain(conv(3), Stage(conv(3), reads={"x": "yy"})),
            r"unknown wire 'yy' \(did you mean y",
            id="unknown wire",
        ),
        pytest.param(
            lambda: chain(conv(3), Stage(conv(3), reads=["x", "y"])),
            "reads 2 wires and has inputs x",
            id="too many reads",
        ),
        pytest.param(
            lambda: chain(conv(3), Stage(conv(3), output_names={"z": "a"})),
            "unknown output 'z'",
            id="unknown output",
        ),
        pytest.param(
            lambda: chain(conv(3), Stage(conv(3), output_names=["y"])),
            "a wire is already called y",
            id="name in use",
        ),
        pytest.param(
            lambda: chain(conv(3), outputs=["z"]),
            "the chain's outputs: unknown wire 'z'",
            id="unknown output of the chain",
        ),
        pytest.param(
            lambda: chain(
                conv(3),
                models.build([node("Add", "a b", "c")], {"a": [1, "T"], "b": [1, "T"]}, {"c": [1, "T"]}),
            ),
            r"which outputs of the stage before it \(y: 1,1,T-2,f32\) does it read as a: 1,T,f32; b: .*reads=",
            id="ambiguous inputs",
        ),
        pytest.param(
            lambda: chain(conv(3), pulse.load(conv(3), {"x": "1,1,2*S"})),
            "no S makes them equal",
            id="no common length",
        ),
    ],
)
def test_refused_chains_say_why(make: Callable[[], object], message: str) -> None:
    """The message has the name and the size of both sides."""
    with pytest.raises(pulse.PulseError, match=message):
        make()
