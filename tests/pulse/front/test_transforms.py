"""Transforms of frames and of sound, against numpy in f64 and against PyTorch."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import InputError
from pulse.facts import Array
from pulse.front import irfft, istft, rfft, stft
from pulse.front.layouts import COMPLEX
from pulse.front.windows import centre, window_values
from tests.pulse.front import references
from tests.pulse.front.stream_checks import assert_near, assert_refused, assert_streams_agree, offline, sound

SHAPES: list[dict[str, Any]] = [
    {"n_fft": 512, "hop": 256, "window": "sqrt_hann"},
    {"n_fft": 512, "hop": 128},
    {"n_fft": 512, "hop": 160, "win_length": 400},
    {"n_fft": 400, "hop": 160, "window": "hamming", "periodic": False},
    {"n_fft": 320, "hop": 160, "pad_mode": "constant", "normalized": True},
    {"n_fft": 256, "hop": 64, "pad_mode": "replicate", "normalized": "window"},
    {"n_fft": 255, "hop": 100, "window": "ones"},
    {"n_fft": 64, "hop": 16, "onesided": False},
    {"n_fft": 96, "hop": 48, "window": "vorbis"},
    {"n_fft": 64, "hop": 32, "window": "hamming", "center": False},
    {"n_fft": 64, "hop": 16, "win_length": 31, "center": False},
]
NUMPY_MODES = {"reflect": "reflect", "constant": "constant", "replicate": "edge"}


def window_of(how: dict[str, Any]) -> Array:
    size = how.get("win_length", how["n_fft"])
    values = window_values("w", how.get("window", "hann"), size, how.get("periodic", True))
    return centre(values, how["n_fft"])


def norm_of(how: dict[str, Any]) -> float:
    normalized = how.get("normalized", False)
    if normalized == "window":
        return float(np.sqrt((window_of(how) ** 2).sum()))
    return float(np.sqrt(how["n_fft"])) if normalized else 1.0


def spectrum(x: Array, how: dict[str, Any]) -> Array:
    """``[B, F, frames]`` complex, from the definition."""
    n, hop = how["n_fft"], how["hop"]
    wide = x.astype(np.float64)
    if how.get("center", True):
        mode = NUMPY_MODES[how.get("pad_mode", "reflect")]
        wide = np.pad(wide, ((0, 0), (n // 2, n // 2)), mode=mode)  # pyright: ignore
    count = (wide.shape[1] - n) // hop + 1
    rows = np.stack([wide[:, j * hop : j * hop + n] * window_of(how) for j in range(count)], 1)
    y = np.fft.rfft(rows) if how.get("onesided", True) else np.fft.fft(rows)
    return y.transpose(0, 2, 1) / norm_of(how)


def inverse(y: Array, how: dict[str, Any], length: int | None = None) -> Array:
    """Samples of ``[B, F, frames]``, from the definition."""
    n, hop = how["n_fft"], how["hop"]
    w = window_of(how)
    rows = y.transpose(0, 2, 1) * norm_of(how)
    rows = np.fft.irfft(rows, n) if how.get("onesided", True) else np.fft.ifft(rows).real
    count = rows.shape[1]
    total, weight = np.zeros((len(y), (count - 1) * hop + n)), np.zeros((count - 1) * hop + n)
    for j in range(count):
        total[:, j * hop : j * hop + n] += rows[:, j] * w
        weight[j * hop : j * hop + n] += w**2
    first = n // 2 if how.get("center", True) else 0
    end = total.shape[1] - first if length is None else first + length
    return total[:, first:end] / weight[first:end]


def real_and_imaginary(y: Array) -> Array:
    return np.stack([y.real, y.imag], -1)


def in_layout(y: Array, layout: str) -> Array:
    """Complex ``[B, F, T]`` in a layout."""
    parts = real_and_imaginary(y)
    if "2F" in layout:
        joined = np.concatenate([parts[..., 0], parts[..., 1]], 1)
        return joined if layout == "2F,T" else joined.swapaxes(1, 2)
    order = ["F", "T", "2"]
    return parts.transpose(0, *(1 + order.index(axis) for axis in layout.split(",")))


LENGTHS = (513, 2003)


def shapes_of(how: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in how.items())


@pytest.mark.parametrize("how", SHAPES, ids=shapes_of)
def test_stft_agrees_with_numpy(how: dict[str, Any]) -> None:
    several = [sound(length) for length in LENGTHS]
    model = stft(**how)
    for x in several:
        assert_near(offline(model, x), real_and_imaginary(spectrum(x, how)))
    assert_streams_agree(model, several, (1, 2))


@pytest.mark.parametrize("how", [how for how in SHAPES if how.get("win_length") != 31], ids=shapes_of)
def test_istft_agrees_with_numpy(how: dict[str, Any]) -> None:
    several = [spectrum(sound(length), how) for length in LENGTHS]
    model = istft(**{key: value for key, value in how.items() if key != "pad_mode"})
    for y in several:
        assert_near(offline(model, real_and_imaginary(y).astype(np.float32)), inverse(y, how))
    assert_streams_agree(model, [real_and_imaginary(y).astype(np.float32) for y in several], (1, 2))


@pytest.mark.parametrize("how", SHAPES, ids=shapes_of)
def test_agrees_with_torch(how: dict[str, Any]) -> None:
    torch = references.torch()
    x = sound(3001)
    size = how.get("win_length", how["n_fft"])
    window = torch.tensor(window_values("w", how.get("window", "hann"), size, how.get("periodic", True)))
    options = {"center": how.get("center", True), "onesided": how.get("onesided", True)}
    if how.get("normalized") != "window":
        options["normalized"] = how.get("normalized", False)
    wide = torch.tensor(x).double()
    args = (how["n_fft"], how["hop"], size, window)
    expected = torch.stft(
        wide, *args, pad_mode=how.get("pad_mode", "reflect"), return_complex=True, **options
    )
    scale = norm_of(how) if how.get("normalized") == "window" else 1.0
    y = offline(stft(**how), x)
    assert_near(y, torch.view_as_real(expected).numpy() / scale)
    if how.get("win_length") != 31:
        back = istft(**{key: value for key, value in how.items() if key != "pad_mode"})
        assert_near(offline(back, y), torch.istft(expected, *args, **options).numpy())


@pytest.mark.parametrize("layout", COMPLEX)
def test_spectra_of_every_layout_are_inverted(layout: str) -> None:
    how: dict[str, Any] = {"n_fft": 64, "hop": 32}
    x = sound(400, batch=2)
    y = spectrum(x, how)
    forward = stft(64, 32, layout=layout, shape="2,T")
    assert_near(offline(forward, x), in_layout(y, layout))
    assert_streams_agree(forward, x, (2,))
    text = ",".join(
        ["2", *({"F": "33", "T": "frames", "2": "2", "2F": "66"}[axis] for axis in layout.split(","))]
    )
    back = istft(64, 32, layout=layout, shape=text)
    assert_near(offline(back, in_layout(y, layout).astype(np.float32)), inverse(y, how))
    assert_streams_agree(back, in_layout(y, layout).astype(np.float32), (2,))


@pytest.mark.parametrize("layout", ["F,T", "T,F"])
def test_real_and_imaginary_parts_may_be_two_outputs(layout: str) -> None:
    x = sound(400)
    model = stft(64, 32, parts="apart", layout=layout)
    y = spectrum(x, {"n_fft": 64, "hop": 32})
    turned = y if layout == "F,T" else y.swapaxes(1, 2)
    outputs = model.run(x)
    assert_near(outputs["real"], turned.real)
    assert_near(outputs["imaginary"], turned.imag)
    assert_streams_agree(model, x)
    back = istft(64, 32, parts="apart", layout=layout)
    feeds = {"x": outputs["real"], "imaginary": outputs["imaginary"]}
    assert_near(offline(back, feeds), inverse(y, {"n_fft": 64, "hop": 32}))
    assert_streams_agree(back, feeds)


@pytest.mark.parametrize("layout", ["F,T", "T,F"])
def test_magnitude_and_phase_agree_with_numpy(layout: str) -> None:
    x = sound(400)
    model = stft(64, 32, parts="polar", layout=layout)
    y = spectrum(x, {"n_fft": 64, "hop": 32})
    turned = y if layout == "F,T" else y.swapaxes(1, 2)
    outputs = model.run(x)
    assert_near(outputs["magnitude"], np.abs(turned))
    assert_near(np.exp(1j * outputs["phase"]), np.exp(1j * np.angle(turned)), 1e-3)
    assert np.abs(outputs["phase"]).max() <= np.float32(np.pi)
    back = istft(64, 32, parts="polar", layout=layout)
    feeds = {"x": outputs["magnitude"], "phase": outputs["phase"]}
    assert_near(offline(back, feeds), inverse(y, {"n_fft": 64, "hop": 32}))
    assert_streams_agree(back, feeds)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize(("n", "size"), [(512, 512), (512, 400), (100, 128), (63, 63)])
def test_rfft_agrees_with_numpy(norm: Any, n: int, size: int) -> None:
    frames = sound(5 * size).reshape(1, 5, size)
    model = rfft(n, norm, window="hann", layout="T,F,2", shape=f"1,frames,{size}")
    window = window_values("w", "hann", n)
    filled = np.pad(frames[..., :n].astype(np.float64), ((0, 0), (0, 0), (0, max(0, n - size)))) * window
    expected = np.fft.rfft(filled, n, norm=norm)
    assert_near(offline(model, frames), real_and_imaginary(expected))
    assert_streams_agree(model, frames)
    back = irfft(n, norm, layout="T,F,2")
    assert_near(
        offline(back, real_and_imaginary(expected).astype(np.float32)), np.fft.irfft(expected, n, norm=norm)
    )
    assert_streams_agree(back, real_and_imaginary(expected).astype(np.float32))


def test_a_two_sided_transform_inverts_to_the_frames() -> None:
    frames = sound(6 * 48).reshape(1, 6, 48)
    expected = np.fft.fft(frames.astype(np.float64))
    assert_near(offline(rfft(48, onesided=False, layout="T,F,2"), frames), real_and_imaginary(expected))
    back = irfft(48, onesided=False, layout="T,F,2", window="hamming")
    assert_near(
        offline(back, real_and_imaginary(expected).astype(np.float32)),
        frames * window_values("w", "hamming", 48),
    )


@pytest.mark.parametrize(
    ("how", "delay"),
    [
        ({"n_fft": 512, "hop": 256}, 0),
        ({"n_fft": 512, "hop": 256, "window": "hamming"}, 1),
        ({"n_fft": 64, "hop": 32, "window": "hamming", "center": False}, 1),
    ],
    ids=["hann", "hamming", "hamming, not centred"],
)
def test_the_delay_leaves_out_zeros_of_the_window(how: dict[str, Any], delay: int) -> None:
    """A frame does not wait for zeros at the ends of a window."""
    assert assert_streams_agree(stft(**how), sound(3000), (1,)) == {"spectrum": delay}


def test_an_inverse_transform_delays_by_half_a_frame_less() -> None:
    """A frame waits for three others, less half of it."""
    assert istft(512, 128).pulsify().outputs[0].delay == 256


def test_the_inverse_has_the_given_length() -> None:
    """The length may be in the symbol of the sound before the transform, whose frames say only how many hops it has."""
    model = istft(64, 16, length="T", shape="1,33,T//16+1,2")
    assert str(model.outputs["sound"].shape[1]) == "T"
    model = istft(64, 16, length="16*frames-9")
    how: dict[str, Any] = {"n_fft": 64, "hop": 16}
    for length, length_given in ((163, 167), (80, 87)):
        y = spectrum(sound(length), how)
        assert_near(offline(model, real_and_imaginary(y).astype(np.float32)), inverse(y, how, length_given))
        assert_streams_agree(model, real_and_imaginary(y).astype(np.float32))
    fixed = istft(64, 16, length=100)
    y = spectrum(sound(163), how)
    assert_near(offline(fixed, real_and_imaginary(y).astype(np.float32)), inverse(y, how, 100))


def test_a_transform_and_its_inverse_give_the_sound() -> None:
    """The result is as long as the sound, which the symbol gives to the inverse; without a symbol it has whole hops."""
    x = sound(1000)
    for window, delay in (("sqrt_hann", 48), ("hamming", 64)):
        forward = stft(64, 16, window=window)
        back = istft(64, 16, window=window, length="T", shape="1,33,T//16+1,2")
        both = pulse.chain(forward, back)
        for length in (33, 47, 48, 1000):
            assert_near(offline(both, x[:, :length].copy()), x[:, :length])
        assert_streams_agree(both, x)
        whole = pulse.chain(forward, istft(64, 16, window=window))
        assert_near(offline(whole, x), x[:, :992])
        assert assert_streams_agree(whole, x) == {"sound": delay}
    pulse.verify(both, pulse=16).require()


def test_verify_proves_stft_and_istft() -> None:
    pulse.verify(stft(64, 32), pulse=32).require()
    pulse.verify(istft(64, 32), pulse=1).require()


@pytest.mark.parametrize("how", SHAPES[:5], ids=str)
@pytest.mark.parametrize("layout", ["F,T,2", "2F,T"])
def test_a_transform_is_one_kernel(how: dict[str, Any], layout: str) -> None:
    """Transforms of all windows and layouts are one kernel."""
    instructions = stft(**how, layout=layout).declutter().pulsify().compile().instructions
    kernels = [row.kernel for row in instructions]
    assert kernels.count("fourier") == 1
    assert "product" not in kernels


@pytest.mark.parametrize("how", SHAPES[:5], ids=str)
def test_an_inverse_transform_is_one_kernel(how: dict[str, Any]) -> None:
    options = {key: value for key, value in how.items() if key != "pad_mode"}
    instructions = istft(**options).declutter().pulsify().compile().instructions
    assert [row.kernel for row in instructions].count("fourier") == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(stft, 1), "stft: n_fft=1 must be an integer from 2 to 8192"),
        (partial(stft, 512, 0), "hop=0 must be an integer from 1"),
        (partial(stft, 512, 256, win_length=600), "win_length=600 must be an integer from 1 to 512"),
        (partial(stft, 512, layout="F,2"), "layout='F,2' must be one of 'F,T,2'"),
        (
            partial(stft, 512, parts="polar", layout="T,F,2"),
            "layout of parts='polar'='T,F,2' must be one of 'F,T'",
        ),
        (partial(stft, 512, parts="two"), "parts='two' must be one of 'complex', 'apart', 'polar'"),
        (partial(stft, 512, pad_mode="circular"), "pad_mode='circular' must be one of"),
        (partial(stft, 512, normalized="yes"), "normalized='yes' must be one of 'frame_length', 'window'"),
        (partial(stft, 512, center=1), "center=1 must be True or False"),
        pytest.param(
            lambda: stft(512, window=[0.0] * 512), "is all zeros", id="stft(512, window=[0.0] * 512)"
        ),
        (partial(istft, 64, 32, center=False), "leave sample 0 uncovered"),
        (partial(istft, 64, 65, window=None), "leave sample"),
        (
            partial(istft, 64, 16, shape="1,30,frames,2"),
            "has 30 frequencies, a transform of this size has 33",
        ),
        (partial(istft, 64, 16, shape="1,33,frames"), "must have 4 axes, such as '1,257,frames,2'"),
        (partial(istft, 64, 16, shape="1,33,frames,3"), "does not have 2 parts"),
        (partial(istft, 64, 16, length="T-"), "length='T-' must be a number or an expression"),
        (partial(istft, 64, 16, length="99+16*frames"), "the samples that the frames reach"),
        (partial(rfft, 64, "none"), "norm='none' must be one of 'backward', 'ortho', 'forward'"),
        (partial(irfft, 0), "n=0 must be"),
    ],
)
def test_transforms_refuse_bad_arguments(call: Any, message: str) -> None:
    assert_refused(call, message)


def test_sound_too_short_to_be_mirrored_is_refused() -> None:
    with pytest.raises(InputError, match="T"):
        stft(64, 32).run(sound(20))
