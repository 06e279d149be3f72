"""Fourier transforms and overlapped frames against numpy."""

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, GraphDefBuilder, Type
from tests.pulse.tensorflow.windows import overlap_added


def test_spectra_give_what_numpy_gives() -> None:
    builder = GraphDefBuilder()
    builder.place("x", 2, 8)
    builder.const("points", [8], np.int32)
    builder.node("bins", "RFFT", "x", "points", Tcomplex=Type("c64"), Treal=F32)
    builder.node("size", "ComplexAbs", "bins", T=Type("c64"), Tout=F32)
    builder.node("phase", "Angle", "bins", T=Type("c64"), Tout=F32)
    builder.node("turned", "Conj", "bins", T=Type("c64"))
    builder.node("power", "Mul", "bins", "turned", T=Type("c64"))
    builder.node("y", "IRFFT", "power", "points", Tcomplex=Type("c64"), Treal=F32)
    x = normal_noise(2, 8)
    outputs = pulse.load(builder.data).model.analyse().run({"x": x})
    bins = np.fft.rfft(x)
    np.testing.assert_allclose(outputs["size"], np.abs(bins), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.exp(1j * outputs["phase"]), np.exp(1j * np.angle(bins)), atol=1e-5)
    np.testing.assert_allclose(outputs["y"], np.fft.irfft(bins * bins.conj()), rtol=1e-4, atol=1e-4)
    session = pulse.tensorflow.load(builder.data).session()
    np.testing.assert_allclose(session.run("bins", {"x": x}), bins, rtol=1e-5, atol=1e-5)


def test_complex_numbers_elsewhere_are_refused() -> None:
    builder = GraphDefBuilder()
    builder.place("x", 2, 8)
    builder.const("points", [8], np.int32)
    builder.node("bins", "RFFT", "x", "points", Tcomplex=Type("c64"), Treal=F32)
    builder.node("y", "Tanh", "bins", T=Type("c64"))
    with pytest.raises(LoadError, match=r"y \(Tanh\): complex"):
        pulse.load(builder.data).model.analyse()


def test_complex_tensors_are_added() -> None:
    builder = GraphDefBuilder()
    names = [builder.place(name, 2, 8) for name in ("a", "b")]
    builder.node("z", "Complex", *names, T=F32, Tout=Type("c64"))
    builder.node("y", "AddN", "z", "z", "z", T=Type("c64"), N=3)
    a, b = normal_noise(2, 2, 8)
    output = pulse.tensorflow.load(builder.data).session().run("y", {"a": a, "b": b})
    np.testing.assert_allclose(output, 3 * (a + 1j * b), rtol=1e-6)


def test_overlap_and_add_streams() -> None:
    typed = pulse.load(overlap_added().data).model.analyse()
    x = normal_noise(1, 5, 6)
    expected = np.zeros((1, 14), np.float32)
    for frame in range(5):
        expected[0, 2 * frame : 2 * frame + 6] += x[0, frame]
    np.testing.assert_allclose(typed.run(x)["y"], expected, rtol=1e-5, atol=1e-5)
    pulse.verify(typed, pulse=1, backend="numpy").require()
