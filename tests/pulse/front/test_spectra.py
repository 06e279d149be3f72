"""Complex numbers in spectra, against numpy."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from pulse.front import compress, from_polar, magnitude, mask, phase, power
from tests.pulse.front.stream_checks import assert_near, assert_refused, assert_streams_agree, offline


def complexes(*shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def split_parts(z: Array, axis: int = -1) -> Array:
    return np.stack([z.real, z.imag], axis).astype(np.float32)


@pytest.mark.parametrize("epsilon", [0.0, 1e-2])
def test_magnitude_and_power_agree_with_numpy(epsilon: float) -> None:
    z = complexes(1, 9, 21)
    model = magnitude(epsilon, shape="1,9,frames,2")
    assert_near(offline(model, split_parts(z)), np.sqrt(np.abs(z) ** 2 + epsilon))
    assert_streams_agree(model, split_parts(z))
    for exponent in (1.0, 2.0, 0.6):
        model = power(exponent, epsilon, shape="1,9,frames,2")
        assert_near(offline(model, split_parts(z)), (np.abs(z) ** 2 + epsilon) ** (exponent / 2))
        assert_streams_agree(model, split_parts(z), (3,))


@pytest.mark.parametrize(("axis", "shape"), [(1, "1,2,9,frames"), (-1, "1,9,frames,2"), (2, "1,frames,2,9")])
def test_the_parts_may_be_on_any_axis(axis: int, shape: str) -> None:
    dims = [int(dim) if dim.isdigit() else 21 for dim in shape.split(",")]
    index = axis % 4
    z = complexes(*dims[:index], *dims[index + 1 :])
    for model, expected in (
        (magnitude(axis=axis, shape=shape), np.abs(z)),
        (phase(axis, shape), np.angle(z)),
    ):
        assert_near(offline(model, split_parts(z, index)), expected)
        assert_streams_agree(model, split_parts(z, index), (3,))


def test_parts_side_by_side_are_multiplied() -> None:
    """One axis has the real parts, then the imaginary parts."""
    z = complexes(1, 9, 21)
    x = np.concatenate([z.real, z.imag], 1).astype(np.float32)
    assert_near(offline(magnitude(axis=1, shape="1,18,T"), x), np.abs(z))
    assert_near(offline(phase(axis=1, shape="1,18,T"), x), np.angle(z))
    m = np.random.default_rng(3).random((1, 9, 21)).astype(np.float32)
    output = offline(mask(axis=1, shape="1,18,T"), {"x": x, "mask": m})
    assert_near(output, np.concatenate([(z * m).real, (z * m).imag], 1))


def test_phases_on_the_axes_are_those_of_atan2() -> None:
    """The phases are those of atan2, and the sign of a zero does not count."""
    points = np.array([0, 1, -1, 1j, -1j, 1 + 1j, -1 + 1j, -1 - 1j, 1 - 1j], np.complex128)[None]
    x = split_parts(points)
    expected = np.angle(points)
    model = phase(shape="1,T,2")
    assert_near(offline(model, x), expected)
    x[0, 2, 1] = -0.0
    assert_near(offline(model, x), expected)
    assert_streams_agree(model, x)


@pytest.mark.parametrize("axis", [-1, 1, 2])
def test_polar_parts_give_the_spectrum(axis: int) -> None:
    z = complexes(1, 9, 21)
    model = from_polar(axis, "1,9,frames")
    feeds = {"x": np.abs(z).astype(np.float32), "phase": np.angle(z).astype(np.float32)}
    assert_near(offline(model, feeds), split_parts(z, axis))
    assert_streams_agree(model, feeds)


@pytest.mark.parametrize("kind", ["real", "ratio", "complex", "polar"])
def test_masks_agree_with_their_formulas(kind: str) -> None:
    z, m = complexes(1, 9, 21), complexes(1, 9, 21, seed=5)
    model = mask(kind, shape="1,9,frames,2")
    if kind in ("real", "ratio"):
        values = m.real.astype(np.float32)
        expected = z * (np.clip(values, 0, 1) if kind == "ratio" else values)
    else:
        values = split_parts(m)
        expected = z * (m if kind == "complex" else np.tanh(np.abs(m)) * m / np.abs(m))
    feeds = {"x": split_parts(z), "mask": values}
    assert_near(offline(model, feeds), split_parts(expected))
    assert_streams_agree(model, feeds)


def test_a_mask_may_hold_for_whole_frames_or_be_zero() -> None:
    z = complexes(1, 9, 21)
    gains = np.random.default_rng(1).random((1, 1, 21)).astype(np.float32)
    model = mask(shape="1,9,frames,2", mask_shape="1,1,frames")
    assert_near(offline(model, {"x": split_parts(z), "mask": gains}), split_parts(z * gains))
    assert_streams_agree(model, {"x": split_parts(z), "mask": gains}, (2,))
    nothing = np.zeros((1, 9, 21, 2), np.float32)
    assert not offline(mask("polar", shape="1,9,frames,2"), {"x": split_parts(z), "mask": nothing}).any()


def test_verify_proves_phase_and_mask() -> None:
    pulse.verify(phase(shape="1,9,frames,2")).require()
    pulse.verify(mask("polar", shape="1,9,frames,2")).require()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(magnitude, -1.0), "epsilon=-1.0 must be a finite number of at least 0"),
        (partial(magnitude, shape="1,9,frames,3"), "has 3 entries, not halves"),
        (partial(magnitude, axis=4), "axis=4 is out of range for '1,257,frames,2'; allowed are -4 to 3"),
        (partial(magnitude, axis=2), "must be a number of at least 1"),
        (partial(power, 0.0), "exponent=0.0 must be a finite number above 0"),
        (partial(from_polar, 9), "axis=9 must be from -4 to 3"),
        (partial(mask, "soft"), "kind='soft' must be one of 'real', 'ratio', 'complex', 'polar'"),
        (partial(mask, "complex", mask_shape="1,9,frames"), "must have the shape '1,257,frames,2' of x"),
        (partial(mask, mask_shape="1,257,frames,2"), "must have 3 axes, such as '1,257,frames'"),
    ],
)
def test_spectral_functions_refuse_bad_arguments(call: Any, message: str) -> None:
    assert_refused(call, message)


@pytest.mark.parametrize("exponent", [0.3, 0.5, 1 / 0.3, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-2])
def test_compress_keeps_phases_and_signs(exponent: float, epsilon: float) -> None:
    """Phases and signs stay, and so do zeros."""
    z = complexes(1, 9, 21)
    z[0, 3, 4] = 0
    model = compress(exponent, epsilon=epsilon, shape="1,9,frames,2")
    size = np.sqrt(np.abs(z) ** 2 + epsilon)
    factor = np.where(size > 0, np.maximum(size, 1e-30) ** (exponent - 1), 0)
    assert_near(offline(model, split_parts(z)), np.stack([z.real, z.imag], -1) * factor[..., None])
    assert_streams_agree(model, split_parts(z))
    model = compress(exponent, "real", epsilon=epsilon, shape="1,9,frames")
    real = z.real.astype(np.float32)
    assert_near(offline(model, real), np.sign(real) * (np.abs(real) + epsilon) ** exponent)
    assert_streams_agree(model, real)
    model = compress(exponent, epsilon=epsilon, axis=1, shape="1,2,9,frames")
    assert_near(offline(model, split_parts(z, 1)), np.stack([z.real, z.imag], 1) * factor[:, None])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exponent": 0}, "compress: exponent=0 must be a finite number above 0"),
        ({"of": "power"}, "compress: of='power' must be one of 'complex', 'real'"),
        ({"axis": 1, "shape": "1,257,frames"}, "has 257 entries, not halves"),
    ],
    ids=["exponent", "kind", "odd number of parts"],
)
def test_bad_arguments_of_compress_are_refused(options: dict[str, Any], message: str) -> None:
    assert_refused(partial(compress, **options), message)
