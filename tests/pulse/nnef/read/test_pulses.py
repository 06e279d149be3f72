# ruff: noqa: E501
"""Files in pulses: ours come back as the stream that they were, those of tract as the offline model."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.errors import LoadError
from pulse.facts import Array
from pulse.interface import Port
from pulse.models import TypedModel
from pulse.runtimes.tract import has_tract
from tests.noise import normal_noise
from tests.pulse.nnef.folders import archive, graph
from tests.pulse.nnef.streaming_models import BEYOND, STREAMS, conv, recurrent, typed_and_pulsed


def form(ports: Sequence[Port]) -> list[tuple[object, ...]]:
    return [(port.shape, port.axis, port.delay, port.rate, str(port.length)) for port in ports]


@pytest.mark.parametrize("name", STREAMS)
def test_a_file_of_pulse_is_the_same_stream(name: str) -> None:
    _, streamed = typed_and_pulsed(*STREAMS[name])
    back = pulse.load(streamed.to_nnef().pack())
    pulsed = back.pulsify()
    assert (form(pulsed.inputs), form(pulsed.outputs)) == (form(streamed.inputs), form(streamed.outputs))
    pulse.verify(back, backend="numpy", lengths=[1, 5, 12]).require()
    with pytest.raises(pulse.PulsifyError, match="was written for pulses of"):
        back.pulsify(97)


def test_a_stream_without_states_is_the_same() -> None:
    typed = pulse.load(BEYOND["average of 3"]).analyse()
    streamed = typed.with_outputs(["x"]).pulsify(pulse=3)
    back = pulse.load(streamed.to_nnef().pack()).pulsify()
    assert form(back.outputs) == form(streamed.outputs)
    assert not back.registers


WRONG = [
    ('("pulse.output_rates", ["1"])', '("pulse.output_rates", ["1", "1"])', "the property pulse.output_rates has 2 values where 1 are needed"),
    ('("pulse.output_lengths", ["T"])', '("pulse.output_lengths", ["T +"])', "its stream (metadata|properties) cannot be read"),
    ('("pulse.output_rates", ["1"])', '("pulse.output_rates", ["1/0"])', "its stream (metadata|properties) cannot be read"),
    ('("pulse.frames", tract_core_cast([4], to = "i64"))', '("pulse.frames", ["four"])', "its stream (metadata|properties) cannot be read"),
    ('("pulse.frames", tract_core_cast([4], to = "i64"))', '("pulse.frames", tract_core_cast([5], to = "i64"))', "5 frames in each pulse"),
    ('("pulse.output_axes", tract_core_cast([2], to = "i64"))', '("pulse.output_axes", tract_core_cast([7], to = "i64"))', "the metadata states 4 frames"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "reason"), WRONG)
def test_properties_that_do_not_fit_are_refused(old: str, new: str, reason: str) -> None:
    written = typed_and_pulsed(conv(pads=[2, 0]), 4)[1].to_nnef()
    text = written.document.text()
    assert old in text, text
    with pytest.raises(LoadError, match=reason):
        pulse.load(archive(text.replace(old, new), **written.tensors)).pulsify()


def whole(body: str, delay: int = 0, outputs: str = "y", axis: int = 2) -> TypedModel:
    """A file as tract writes it of pulses of 4 frames, x being [1, 2, 4]."""
    head = f"""extension tract_registry tract_core;
extension tract_registry tract_pulse;
extension tract_symbol S;
fragment tract_core_properties() -> (properties: (string, tensor<scalar>)[])
{{
    properties = [("pulse.delay", tract_core_cast([{delay}], to = "i64")), ("pulse.input_axes", tract_core_cast([2], to = "i64")), ("pulse.output_axes", tract_core_cast([{axis}], to = "i64")), ("pulse.streaming_symbol", ["S"])];
}}
fragment body(s: tensor<scalar>, x: tensor<scalar>) -> (n: tensor<scalar>) {{ n = s + x; }}
"""
    text = graph(f"x = external(shape = [1, 2, 4]);\n{body}", outputs=outputs, head=head)
    return pulse.load(archive(text)).analyse()


LATE = "tract_pulse_delay(x, axis = 2, delay = {}, overlap = {})"
X: Array = normal_noise(1, 2, 7, seed=3)


TRACT = [
    (f"y = {LATE.format(3, 0)};", 3, X),
    (f"a = {LATE.format(0, 2)}; y = max_pool(a, size = [1, 1, 3], border = 'ignore', padding = [(0, 0), (0, 0), (0, 0)]);", 2,
     np.maximum(np.maximum(X[..., :-2], X[..., 1:-1]), X[..., 2:])),
    (f"a = {LATE.format(0, 2)}; b = tract_pulse_pulse_pad(a, axis = 2, before = 1, begin_input = 2, overlap = 2, after = 1, end_input = S + 2, border = 'constant', value = 0.5);"
     " y = box(b, size = [1, 1, 3], border = 'ignore', padding = [(0, 0), (0, 0), (0, 0)]);", 1,
     sum(np.pad(X, [(0, 0), (0, 0), (1, 1)], constant_values=0.5)[..., k : k + 7] for k in range(3))),
    ("y = tract_pulse_pulse_pad(x, axis = 2, before = 0, begin_input = 0, after = 3, end_input = S, border = 'replicated');", 0,
     np.pad(X, [(0, 0), (0, 0), (0, 3)], mode="edge")),
    (f"a = {LATE.format(2, 0)}; y = tract_pulse_cumsum(a, axis = 2, skip = 2);", 2, np.cumsum(X, 2)),
    (f"a = {LATE.format(2, 0)}; z = [[[0.0], [0.0]]]; y = tract_core_scan(body = 'body', scan = [('x', a, 2, 1)], full = [], state = [('s', z, 'n')], output = [('n', 'full', 2, 1)], skip = 2);",
     2, np.cumsum(X, 2)),
    (f"a = {LATE.format(2, 0)}; y = a + x;", 2, X[..., :-2] + X[..., 2:]),
    (f"a = {LATE.format(1, 0)}; b = concat([a, x], axis = 1); y = b;", 1, np.concatenate([X[..., :-1], X[..., 1:]], 1)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "delay", "expected"),
    TRACT,
    ids=["delay", "max_pool", "pad and box", "replicated pad", "cumsum", "scan", "sum", "concat"],
)
def test_a_file_of_tract_is_the_offline_model(body: str, delay: int, expected: Array) -> None:
    model = whole(body, delay)
    np.testing.assert_allclose(model.run({"x": X})["y"], expected, rtol=1e-6, atol=1e-6)
    pulse.verify(model, pulse=3).require()


@pytest.mark.parametrize(
    ("body", "delay", "axis", "reason"),
    [
        ("y = reshape(x, shape = [1, 8, 1]);", 0, 2, "the output y has 1 frame, whatever the pulse"),
        ("y = x;", 0, 5, "the output y has no axis 5 that is 0 frames late"),
        ("y = x;", -1, 2, "the output y has no axis 2 that is -1 frames late"),
        ("y = tract_pulse_pulse_pad(x, axis = 2, before = 3, begin_input = 1, after = 0, end_input = S);", 0, 2, "the border cannot have 3 frames before frame 1"),
        ("z = [[[0.0], [0.0]]]; y = tract_core_scan(body = 'body', scan = [('x', x, 2, -1)], full = [], state = [('s', z, 'n')], output = [('n', 'full', 2, 1)], skip = 2);", 0, 2, "it skips 2 iterations"),
    ],
    ids=["one frame", "no such axis", "early", "border before the stream", "skipped iterations"],
)  # fmt: skip
def test_pulses_without_an_offline_model_are_refused(body: str, delay: int, axis: int, reason: str) -> None:
    with pytest.raises(LoadError, match=reason):
        whole(body, delay, axis=axis)


@pytest.mark.skipif(not has_tract(), reason="tract is not installed: pip install tract")
@pytest.mark.parametrize(
    ("source", "frames"),
    [
        pytest.param(conv(pads=[1, 1]), 4, id="padding"),
        pytest.param(recurrent("GRU", 3), 2, id="recurrent"),
        pytest.param(conv(strides=[2], pads=[2, 0]), 4, id="stride"),
    ],
)
def test_dumps_of_tract_are_read(source: ModelProto, frames: int, tmp_path: Path) -> None:
    import tract

    (tmp_path / "model.onnx").write_bytes(source.SerializeToString())
    model = tract.onnx().load(tmp_path / "model.onnx").into_model()
    model.transform(tract.Pulse(frames, symbol="T"))
    tract.nnef().with_pulse().write_model_to_dir(model, tmp_path / "pulsed.nnef")
    typed, back = pulse.load(source).analyse(), pulse.load(tmp_path / "pulsed.nnef").analyse()
    (name,), (other,) = typed.inputs, back.inputs
    for length in (5, 8):
        sizes = [int(dim.eval(dict.fromkeys(dim.symbols, length))) for dim in typed.inputs[name].shape]
        x = normal_noise(*sizes)
        (expected,), (output,) = typed.run({name: x}).values(), back.run({other: x}).values()
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    pulse.verify(back, pulse=frames).require()
