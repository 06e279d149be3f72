"""Modules as their authors write them: each is exported for every length, and streams."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import PulseWarning
from pulse.models import TypedModel
from pulse.torch.replacements import small_constants
from tests.pulse.pulsify.delay_oracle import smallest_delay
from tests.pulse.torch.exporter import F, nn, torch


class Written(nn.Module):
    """A forward that is given, and one layer."""

    def __init__(self, forward: Callable[..., Any], layer: Any = None) -> None:
        super().__init__()
        self.written = forward
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return self.written(x) if self.layer is None else self.layer(self.written(x))


def stream_module(module: Any, example: Any, axis: int, pulse_frames: int | None = None) -> TypedModel:
    """The model, proved on streams."""
    torch.manual_seed(0)
    typed = pulse.from_torch(module, example, {"x": {axis: "T"}}).analyse().declutter()
    pulse.verify(typed, pulse=pulse_frames).require()
    return typed


def as_encodec_pads(x: Any) -> Any:
    """Causal, and as far at the end as the stride needs."""
    length, kernel, stride = x.shape[-1], 8, 4
    frames = (length - kernel + (kernel - stride)) / stride + 1
    ideal = (math.ceil(frames) - 1) * stride + (kernel - (kernel - stride))
    return F.pad(x, (kernel - stride, ideal - length))


def as_rotary_positions(x: Any) -> Any:
    place = torch.arange(x.shape[1], dtype=torch.float32, device=x.device)
    place = (place + torch.arange(0.0, x.shape[1])) / 2
    angle = torch.outer(place, 1 / 100 ** (torch.arange(8) / 8))
    return x * torch.cos(angle) + x.roll(1, -1) * torch.sin(angle)


def there_and_back(x: Any) -> Any:
    window = torch.hann_window(64)
    return torch.istft(torch.stft(x, 64, 16, window=window, return_complex=True), 64, 16, window=window)


def of_its_length(x: Any) -> Any:
    """A complex mask, and as many samples as came in."""
    window = torch.hann_window(64)
    z = torch.stft(x, 64, 16, window=window, return_complex=True)
    z = z * torch.exp(1j * torch.log1p(z.abs())) / 2 - 0.5j
    return torch.istft(z, 64, 16, window=window, length=x.shape[-1])


def complex_frames(x: Any) -> Any:
    """The frame before each, without its lowest band, and its mean over bands."""
    z = torch.view_as_complex(x)
    before = F.pad(z, (0, 0, 1, 0))[:, :-1]
    z = torch.cat([(1 + 2j) * z[:, :, 1:], 1j - before[:, :, :1]], 2).transpose(1, 2)
    return torch.view_as_real(-(z / z.conj().resolve_conj()).mean(1))


def as_demucs_pads(x: Any) -> Any:
    """Pad the end as far as two strides need."""
    length = x.shape[-1]
    for _ in range(2):
        length = max(math.ceil((length - 8) / 4) + 1, 1)
    for _ in range(2):
        length = (length - 1) * 4 + 8
    return F.pad(x, (0, int(math.ceil(length / 1)) - x.shape[-1]))  # noqa: RUF046


def padded_at_the_start_by_its_length(x: Any) -> Any:
    """Padded on both sides, as the strides need, and trimmed again where anything was added."""
    length = x.shape[-1]
    added = math.ceil((length - 8) / 4) * 4 + 8 - length
    x = F.pad(x, (added // 2, added - added // 2)).cumsum(-1)
    more = x.shape[-1] - length
    if more < 0:
        raise ValueError("too short")
    return x[..., more // 2 : -(more - more // 2)] if more else x


def complex_taps(x: Any) -> Any:
    """Each frame and the two before it, weighted, as DeepFilterNet writes it."""
    z = torch.view_as_complex(F.pad(x, (0, 0, 0, 0, 2, 0)).contiguous()).unfold(1, 3, 1)
    taps = torch.view_as_complex(x.unsqueeze(3).repeat(1, 1, 1, 3, 1))
    return torch.view_as_real(torch.einsum("btfn,btfn->btf", z, taps))


def in_fours(x: Any) -> Any:
    count = min(int(math.floor(x.shape[-1] / 4)), len(x[0, 0]))  # noqa: RUF046
    return x[..., : count * 4].reshape(1, count, 4).mean(-1)


def as_moshi_begins(x: Any) -> Any:
    """A buffer before the stream that begins with its first frame."""
    before, is_first = torch.zeros(1, 2, 3), torch.ones(1, dtype=torch.bool)
    before[:] = torch.where(is_first.view(-1, 1, 1), x[..., :1], before)
    return torch.cat([before, x], -1)


def as_resamplers_end(x: Any) -> Any:
    """A part of the frames, in a number that a tensor's function rounds up."""
    length = x.shape[-1]
    expected = torch.ceil(torch.as_tensor(2 * length / 3)).long()
    frames = F.pad(x, (1, 4)).unfold(2, 4, 3)
    return torch.cat([frames.mean(3), frames.amax(3)], 1).transpose(1, 2).reshape(1, 1, -1)[..., :expected]


def fold_frames(x: Any) -> Any:
    """Frames of 16 samples, 4 apart, added."""
    length = (x.shape[1] - 1) * 4 + 16
    return F.fold(x.transpose(1, 2), (1, length), (1, 16), stride=(1, 4))[:, 0, 0]


def with_harmonics(x: Any) -> Any:
    """A range of an integer and a float, whose numbers are floats."""
    return torch.sin(torch.cumsum(x, -1) * torch.arange(1, 6.0)[:, None])


def as_low_frame_rates(x: Any) -> Any:
    """Copies of the first frame before, then of the last one after; seven frames joined for every six."""
    left = torch.cat([x[:, :1].repeat(1, 3, 1), x], 1)
    return torch.cat([left, left[:, -1:].expand(-1, 6, -1)], 1).unfold(1, 7, 6).flatten(2)


def as_zipformer_downsamples(x: Any) -> Any:
    """Pairs of frames, the last one with a copy of itself if there is an odd number; their means are repeated."""
    length = x.shape[1]
    pairs = (length + 1) // 2
    more = 2 * pairs - length
    if more:
        x = torch.cat([x, x[:, -1:].expand(-1, more, -1)], 1)
    means = x.reshape(1, pairs, 2, 3).mean(2, keepdim=True)
    return means.expand(-1, -1, 2, -1).reshape(1, 2 * pairs, 3)[:, :length]


@pytest.mark.parametrize(
    ("forward", "layer", "shape", "axis"),
    [
        (lambda x: F.pad(x, (0, math.ceil(x.shape[-1] / 4) * 4 - x.shape[-1])), (1, 3, 4, 4), (1, 1, 41), 2),
        (as_encodec_pads, (1, 3, 8, 4), (1, 1, 41), 2),
        (as_rotary_positions, None, (1, 20, 8), 1),
        (lambda x: x - x[..., :1], None, (1, 2, 12), 2),
        (there_and_back, None, (1, 400), 1),
        (fold_frames, None, (1, 20, 16), 1),
        (lambda x: x, None, (1, 2, 40), 2),
        (lambda x: x.squeeze(1), (16, 3, 3), (1, 16, 40), 2),
        (of_its_length, None, (1, 400), 1),
        (complex_frames, None, (1, 20, 6, 2), 1),
        (complex_taps, None, (1, 20, 6, 2), 1),
        (as_demucs_pads, (1, 3, 8, 4), (1, 1, 80), 2),
        (in_fours, None, (1, 1, 41), 2),
        (as_moshi_begins, (2, 3, 4), (1, 2, 20), 2),
        (as_resamplers_end, None, (1, 1, 40), 2),
        (lambda x: F.interpolate(x, scale_factor=4, mode="linear"), None, (1, 2, 20), 2),
        (lambda x: F.interpolate(x, 2 * x.shape[-1], mode="linear"), None, (1, 2, 20), 2),
        (with_harmonics, None, (1, 1, 20), 2),
        (as_low_frame_rates, None, (1, 20, 3), 1),
        (as_zipformer_downsamples, None, (1, 21, 3), 1),
    ],
    ids=[
        *(
            "ceil",
            "encodec",
            "rotary",
            "first",
            "istft",
            "fold",
            "identity",
            "squeeze",
            "length",
            "complex",
            "taps",
            "demucs",
        ),
        *("fours", "moshi", "resampled", "linear", "twice", "harmonics", "low rate", "pairs"),
    ],
)
def test_written_modules_stream(
    forward: Callable[..., Any], layer: Any, shape: tuple[int, ...], axis: int
) -> None:
    torch.manual_seed(0)
    stream_module(Written(forward, None if layer is None else nn.Conv1d(*layer)), torch.randn(shape), axis)


def padded_if_needed(x: Any) -> Any:
    """Filled up to whole groups of four frames, whose means are repeated."""
    length = x.shape[-1]
    if length % 4 != 0:
        x = F.pad(x, (0, 4 - length % 4))
    return x.unflatten(-1, (-1, 4)).mean(-1).repeat_interleave(4, -1)[..., :length]


def test_a_condition_on_a_remainder_holds_for_other_lengths() -> None:
    """An example of whole groups decides that nothing is filled up; one of a frame more serves all lengths."""
    for frames in (40, 41):
        stream_module(Written(padded_if_needed), torch.randn(1, 2, frames), 2, 4)


def test_an_onnxscript_with_a_moved_constant_check_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_constants, "MATCHER", "onnxscript.moved.matcher")
    warning = pytest.warns(
        PulseWarning,
        match=r"onnxscript .* a module that pulse does not know .*\(onnxscript\.moved\.matcher\)",
    )
    with warning, small_constants.keep_small_constants():
        pass


def test_constants_that_are_nearly_0_or_1_stay() -> None:
    """The optimiser of onnxscript takes them for these numbers."""

    def normalise(x: Any) -> Any:
        frames = F.relu(x)
        deviation = torch.pow(torch.var(frames, 1, keepdim=True, unbiased=False) + 1e-8, 0.5)
        return frames / deviation * 1.000005

    silent = -torch.rand(1, 4, 20)
    model = pulse.from_torch(Written(normalise), silent, {"x": {2: "T"}})
    typed = model.analyse().declutter()
    pulse.verify(typed, pulse=1).require()
    operators = [getattr(node.op, "kind", "") for node in typed.graph.nodes]
    assert operators.count("add") == 1
    assert operators.count("mul") >= 1


def test_padding_at_the_start_by_the_length_is_refused() -> None:
    """The length is unknown before the stream ends; the error names the node and the amount."""
    model = pulse.from_torch(
        Written(padded_at_the_start_by_its_length, None), torch.randn(1, 1, 41), {"x": {2: "T"}}
    )
    with pytest.raises(
        pulse.PulseError, match=r"the padding before the first frame, .* depends on the length"
    ):
        pulse.stream(model)


def test_lines_to_the_length_of_a_skip_are_one_refusal() -> None:
    """Nearest frames after a stride of 2 stream, straight lines between frames do not: their factor differs."""

    def resize_to_skip(x: Any, mode: str) -> Any:
        return F.interpolate(x[..., ::2], size=x.shape[-1], mode=mode) + x

    example = torch.randn(1, 2, 20)
    nearest = pulse.from_torch(Written(lambda x: resize_to_skip(x, "nearest")), example, {"x": {2: "T"}})
    pulse.verify(nearest, pulse=4).require()
    lines = pulse.from_torch(Written(lambda x: resize_to_skip(x, "linear")), example, {"x": {2: "T"}})
    with pytest.raises(
        pulse.PulseError, match=r"1 node refused\n.*its factor, T frames of \(T\+1\)/2, depends"
    ):
        pulse.stream(lines)


def test_a_centred_transform_has_the_smallest_delay() -> None:
    """A frame ends 255 samples after its position: one hop of 128 after the one that has just come.

    The first one would also need sample 256, which is mirrored to its start; but there a Hann window is zero.
    """

    def spectrum(x: Any) -> Any:
        return torch.stft(x, 512, 128, window=torch.hann_window(512), return_complex=True).abs()

    model = pulse.from_torch(Written(spectrum), torch.randn(1, 4000), {"x": {1: "T"}})
    pulsed = model.analyse().declutter().pulsify(pulse=128)
    assert pulsed.outputs[0].delay == 1


def spectrum(window: Any, **options: Any) -> Any:
    return lambda x: torch.stft(x[:, 0], 32, 8, window=window, return_complex=True, **options).abs()


def bands(x: Any) -> Any:
    power = spectrum(torch.hann_window(32))(x).pow(2).transpose(1, 2)
    return torch.log(power @ torch.linspace(0.1, 1, 17 * 5).reshape(17, 5) + 1e-3).transpose(1, 2)


def masked_sound(x: Any) -> Any:
    window = torch.hann_window(32)
    z = torch.stft(x[:, 0], 32, 8, window=window, return_complex=True)
    return torch.istft(z * torch.sigmoid(z.abs()), 32, 8, window=window, length=x.shape[-1])[:, None]


def padded_by_hand(x: Any) -> Any:
    return spectrum(torch.hann_window(32), center=False)(F.pad(x, (12, 12), "reflect"))


def zeros_around_a_mirror(x: Any) -> Any:
    return F.conv1d(F.pad(x, (3, 3), "reflect"), torch.ones(1, 1, 9), stride=2, padding=2)


@pytest.mark.parametrize(
    ("forward", "pulse_frames"),
    [
        (spectrum(torch.hann_window(32)), 8),
        (spectrum(torch.ones(32)), 8),
        (spectrum(torch.hamming_window(32, periodic=False)), 16),
        (spectrum(torch.hann_window(32), center=False), 8),
        (spectrum(torch.hann_window(32), pad_mode="constant"), 8),
        (bands, 8),
        (masked_sound, 8),
        (padded_by_hand, 8),
        (zeros_around_a_mirror, 2),
    ],
    ids=[
        "hann",
        "no window",
        "hamming",
        "not centred",
        "zeros",
        "mel",
        "istft",
        "by hand",
        "around a mirror",
    ],
)
def test_written_modules_have_the_smallest_delay(forward: Any, pulse_frames: int) -> None:
    """The oracle runs over the exported graph."""
    typed = pulse.from_torch(Written(forward), torch.randn(1, 1, 160), {"x": {2: "T"}}).analyse().declutter()
    (output,) = typed.pulsify(pulse=pulse_frames).outputs
    assert output.delay == smallest_delay(typed, pulse_frames, output.frames, 80)
    pulse.verify(typed, pulse=pulse_frames).require()


def test_a_length_below_the_branch_of_the_example_is_refused() -> None:
    """The model keeps the side that the example takes, and refuses lengths of the other one."""

    def pad_by_length(x: Any) -> Any:
        return F.pad(x, (9, 0), "reflect") if x.shape[-1] > 9 else F.pad(F.pad(x, (0, 10)), (9, 0), "reflect")

    with pytest.warns(pulse.PulseWarning, match=r"takes shorter inputs than the model, .*needs .*T>=10"):
        typed = pulse.from_torch(Written(pad_by_length), torch.randn(1, 1, 24), {"x": {2: "T"}}).analyse()
    pulse.verify(typed).require()
    with pytest.raises(pulse.InputError, match="T>=10"):
        typed.run(np.zeros((1, 1, 9), np.float32))


def test_nothing_of_an_export_stays() -> None:
    """An export leaves nothing in PyTorch's sizes or in the files of the module."""
    before = dict(vars(torch.SymInt)), set(globals())
    pulse.from_torch(Written(in_fours), torch.randn(1, 1, 24), {"x": {2: "T"}})
    assert (dict(vars(torch.SymInt)), set(globals())) == before


class Codec(nn.Module):
    """An encoder with an output of a dict, and an input with a default."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv1d(1, 4, 4, 2)
        self.up = nn.ConvTranspose1d(4, 1, 4, 2)

    def encode(self, x: Any, gain: Any = None) -> dict[str, Any]:
        frames = self.down(x if gain is None else x * gain)
        return {"frames": frames, "levels": {"peak": frames.abs()}}

    def forward(self, x: Any) -> Any:
        return self.up(self.encode(x)["frames"])


def test_a_module_and_an_example_are_enough() -> None:
    with pytest.warns(
        pulse.PulseWarning, match=r'Codec: time \(T\) is axis 2 of x: .*dynamic=\{"x": \{2: "T"\}\}'
    ):
        typed = pulse.from_torch(Codec(), torch.randn(1, 1, 64)).analyse().declutter()
    pulse.verify(typed, pulse=2).require()


def test_a_method_is_read_with_a_dict_of_examples() -> None:
    codec = Codec().train()
    example = {"x": torch.randn(1, 1, 64), "gain": torch.full((1,), 0.5)}
    typed = pulse.from_torch(codec, example, {"x": {2: "T"}}, method="encode").analyse().declutter()
    assert (typed.title, list(typed.outputs), codec.training) == (
        "Codec.encode",
        ["frames", "levels_peak"],
        True,
    )


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(pulse.InputError, match="Codec has no method 'decode'"):
        pulse.from_torch(Codec(), torch.randn(1, 1, 64), method="decode")


def scripted_convolution() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript itself
        return torch.jit.script(nn.Conv1d(2, 2, 3))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        pytest.param(
            lambda: Written(lambda x: torch.complex(x[:, :1], x[:, 1:]).tanh().abs()),
            pulse.LoadError,
            r"complex numbers in test_written_modules.py line \d+ \(tanh\): .*write them as pairs of real",
            id="complex numbers",
        ),
        pytest.param(
            lambda: Written(lambda x: x if x.sum() > 0 else -x),
            pulse.LoadError,
            r"in test_written_modules.py line \d+, a size or a condition depends on the values of a .*torch\.where",
            id="condition on values",
        ),
        pytest.param(
            scripted_convolution,
            pulse.InputError,
            r"is a TorchScript program.*load an ONNX file",
            id="TorchScript",
        ),
        pytest.param(
            lambda: Written(lambda x: x + torch.randn_like(x)),
            pulse.LoadError,
            "draws random numbers",
            id="random numbers",
        ),
        pytest.param(
            lambda: Written(lambda x: x, nn.Conv1d(3, 3, 3)),
            pulse.InputError,
            "Written does not run on the example: RuntimeError: ",
            id="example of another size",
        ),
    ],
)
def test_refusals_of_modules_name_what_to_write(
    make: Callable[[], Any], error: type[pulse.PulseError], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only the error names it; PyTorch prints nothing else."""
    with pytest.raises(error, match=words) as caught:
        pulse.from_torch(make(), torch.randn(1, 2, 40), {"x": {2: "T"}})
    assert "Original traceback" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
