"""Functions of PyTorch that its exporter fixes to the example's length, or writes as something that cannot stream."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import pulse
from pulse.torch.advice import plain_message
from tests.pulse.torch.exporter import F, nn, torch


class Module(nn.Module):
    """A forward that is given, and two layers."""

    def __init__(self, forward: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.written = forward
        self.first, self.second = nn.Conv1d(1, 2, 4), nn.Conv1d(2, 2, 3)
        self.own = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.written(self, x)


def pool_layers(self: Any, x: Any) -> Any:
    """Maxima of two frames after each of two layers, the start and the end left out before."""
    x = F.max_pool1d(F.relu(self.first(x[:, :, 3:-2])), 2, 2)
    return F.max_pool1d(self.second(x), 3, 1, padding=1)


def ceil_pool(self: Any, x: Any) -> Any:
    """The last window may be shorter."""
    return F.max_pool1d(self.first(x), 3, 2, ceil_mode=True)


def overlapping_windows(self: Any, x: Any) -> Any:
    """Windows as a view with its own strides, as many as whole hops need."""
    frames = math.ceil((x.shape[-1] - 8) / 4) + 1
    padded = F.pad(x[:, 0], (0, frames * 4 + 4 - x.shape[-1])).contiguous()
    rows, hop = padded.stride(0), 4 * padded.stride(1)
    return torch.as_strided(padded, (1, frames, 8), (rows, hop, padded.stride(1))).square().mean(-1)


def logarithmic_sums(self: Any, x: Any) -> Any:
    """A gated recurrence as a scan in logarithms, as minGRU computes it."""
    x = self.first(x).transpose(1, 2)
    forgotten = (-F.softplus(x)).cumsum(1)
    return (forgotten + (F.logsigmoid(x) - forgotten).logcumsumexp(1)).exp()


def numbered_loops(self: Any, x: Any) -> Any:
    """Two loops over the frames of two tensors with their numbers; a state that begins with one row."""
    x = self.first(x).transpose(1, 2)
    for _ in range(2):
        state, y = torch.zeros(2), torch.empty(1, x.shape[1], 2)
        for step, (frame, gate) in enumerate(zip(x.unbind(1), x.sigmoid().unbind(1))):
            state = state.lerp(frame + self.own(state), gate)
            y[:, step] = state
        x = y
    return x


def from_the_end(self: Any, x: Any) -> Any:
    """The last frames, as many as a later layer has."""
    early = self.first(x)
    late = self.second(early)
    return torch.cat([sound[:, :, -late.size(2) :] for sound in (early, late)], 1)


def every_other_frame(self: Any, x: Any) -> Any:
    """Every other frame by nearest interpolation, there and back."""
    return F.interpolate(F.interpolate(self.first(x), scale_factor=0.5), scale_factor=2)


def exact_nearest_frames(self: Any, x: Any) -> Any:
    """Frames of exact positions: more of them, fewer, three for two, and neighbouring channels."""
    several = [F.interpolate(x, scale_factor=factor, mode="nearest-exact") for factor in (2, 1.5)]
    more, halves = several[0] * 2, F.interpolate(several[1], scale_factor=1 / 3, mode="nearest-exact")
    size = (x.shape[2], 4)
    channels = F.interpolate(x.transpose(1, 2).unsqueeze(1), size=size, mode="nearest-exact")
    fewer = F.interpolate(more, scale_factor=0.25, mode="nearest-exact")
    return fewer + halves + channels[:, 0].mean(2)[:, None, ::2]


def stable_functions(self: Any, x: Any) -> Any:
    """Functions of values whose exponentials and squares overflow."""
    before = 1e3 * F.pad(x, (1, -1))
    sums = [torch.logaddexp(200 * x, before), torch.logaddexp2(200 * x, before), F.logsigmoid(before)]
    return torch.cat([*sums, torch.hypot(x, before), torch.hypot(0 * x, 0 * x)], 1)


def small_values(self: Any, x: Any) -> Any:
    """Functions that are compositions which lose the digits of small values, in other units."""
    logarithm, power = torch.log1p(1e-8 * x), torch.expm1(1e-8 * x)
    return torch.cat([1e8 * logarithm, 1e8 * power, 1e9 * torch.special.erfc(4 + x.abs())], 1)


def phases(self: Any, x: Any) -> Any:
    """Those of the first bin, which is real."""
    spectrum = torch.stft(x[:, 0], 8, 2, window=torch.ones(8), center=False, return_complex=True)[:, :1]
    return torch.cat([torch.angle(spectrum), torch.atan2(spectrum.imag, spectrum.real - 1)], 1)


def spectra_in_place(self: Any, x: Any) -> Any:
    """Complex sums with a factor, and operations that change a tensor which is read by another name."""
    z = torch.view_as_complex(self.first(x).transpose(1, 2).contiguous())
    same = z
    z *= 2j
    z.sub_(1, alpha=3)
    return torch.view_as_real(torch.add(same, z, alpha=2))


def close_rows(self: Any, x: Any) -> Any:
    """Distances of rows that are far from the origin and close to each other."""
    rows = self.first(x).transpose(1, 2).unsqueeze(2) + 100
    return torch.cdist(rows, rows + torch.tensor([[0.0, 0.0], [0.01, 0.0], [0.0, 1.0]]))


def infinite_sides(self: Any, x: Any) -> Any:
    return x + 1 / torch.hypot(x / 0, x * math.inf)


def medians(self: Any, x: Any) -> Any:
    """Median filters of an odd and an even length, and another rank."""
    odd, even = (F.pad(x, (count - 1, 0)).unfold(2, count, 1) for count in (5, 4))
    return torch.cat([odd.median(-1).values, torch.median(even, dim=3)[0], odd.kthvalue(2, -1)[0]], 1)


def padded_transform(self: Any, x: Any) -> Any:
    """A transform of complex frames that are padded to its length."""
    z = torch.fft.fft(x.unfold(2, 6, 2) * torch.exp(1j * torch.arange(6.0)), dim=-1)
    return torch.real(torch.fft.ifft(z, n=8))


def neighbouring_channels(self: Any, x: Any) -> Any:
    """Windows of two channels and all frames, as FullSubNet takes neighbouring bands."""
    y = torch.cat([self.first(x), x[..., 3:]], 1)
    frames = y.shape[-1]
    windows = F.unfold(y.unsqueeze(1), (2, frames)).reshape(1, 2, frames, 2)
    return windows.permute(0, 3, 1, 2).reshape(1, 4, frames)


def windows_made_in_a_call(self: Any, x: Any) -> Any:
    symmetric = torch.hamming_window(7, periodic=False, alpha=0.5, beta=0.4)
    return x.unfold(-1, 8, 2) * torch.hamming_window(8) + torch.nn.functional.pad(symmetric, (0, 1))


def frames_by_index(self: Any, x: Any) -> Any:
    """Windows by a table of indices, and neighbours of each frame, at the ends that of the end itself."""
    starts = torch.arange((x.shape[-1] - 8) // 4 + 1) * 4
    windows = x[..., starts[:, None] + torch.arange(8)].mean(-1)
    places = torch.arange(x.shape[-1])
    near = x[0, 0, (places[:, None] + torch.arange(-5, 5)).clamp(0, x.shape[-1] - 1)]
    before = (
        x[..., (places - 2).clamp(min=0)] + x[..., torch.minimum(places + 1, torch.tensor(x.shape[-1] - 1))]
    )
    return F.pad(windows, (0, 3)).repeat_interleave(4, -1)[..., : x.shape[-1] - 7], near, before


def kernels_of_frames(self: Any, x: Any) -> Any:
    """A filter for each frame, as one convolution with as many groups as there are frames."""
    rows = x[..., 8:].unfold(2, 11, 4)
    kernels = torch.tanh(x[..., 8:-3].unfold(2, 8, 4)[..., ::2])
    count = rows.shape[2]
    kernels = kernels[:, :, :count].reshape(count, 1, 4)
    return F.conv1d(rows.reshape(1, count, 11), kernels, padding=1, groups=count)


@pytest.mark.parametrize(
    "forward",
    [
        pool_layers,
        ceil_pool,
        overlapping_windows,
        logarithmic_sums,
        numbered_loops,
        from_the_end,
        every_other_frame,
        exact_nearest_frames,
        medians,
        stable_functions,
        small_values,
        phases,
        spectra_in_place,
        close_rows,
        infinite_sides,
        padded_transform,
        neighbouring_channels,
        windows_made_in_a_call,
        frames_by_index,
        kernels_of_frames,
    ],
    ids=lambda forward: forward.__name__,
)
def test_a_function_streams(forward: Callable[[Any, Any], Any]) -> None:
    torch.manual_seed(0)
    model = pulse.from_torch(Module(forward), torch.randn(1, 1, 40), {"x": {2: "T"}})
    pulse.verify(model).require()


def test_aligned_corners_are_refused_by_their_line() -> None:
    module = Module(lambda self, x: F.interpolate(x, scale_factor=2, mode="linear", align_corners=True))
    model = pulse.from_torch(module, torch.randn(1, 1, 40), {"x": {2: "T"}})
    with pytest.raises(
        pulse.PulsifyError, match=r"test_functions.py line \d+.* with align_corners the position"
    ):
        model.analyse().pulsify()


def third_and_half(self: Any, x: Any) -> Any:
    """A third of the frames, and half of these, which are repeated."""
    third = F.avg_pool1d(x, 3)
    return F.interpolate(F.avg_pool1d(third, 2), scale_factor=2) + third


def test_sizes_that_are_equal_for_multiples_of_6_stream() -> None:
    pulse.verify(pulse.from_torch(Module(third_and_half), torch.randn(1, 1, 48), {"x": {2: "6*T"}})).require()


def test_a_message_of_pytorch_ends_before_its_internals() -> None:
    text = (
        "Could not guard on u0\nconsider using data-dependent friendly APIs\nCaused by: (pulse/torch/x.py:1)"
    )
    assert plain_message(text) == "Could not guard on u0"
    assert plain_message("No sizes\nException raised from f at g.cpp:1\nframe #0: c10::Error") == "No sizes"


def emphasis_in_place(self: Any, x: Any) -> Any:
    """Frames after the first are overwritten in place, as torchaudio's Preemphasis does."""
    x = x.clone()
    x[..., 1:] -= 0.97 * x[..., :-1]
    return self.first(x)


def clamps_by_mixed_numbers(self: Any, x: Any) -> Any:
    """Bounds of an integer and a float, as speechbrain's SincConv has them."""
    return torch.clamp(self.first(x), -1, 0.5).clamp_(min=-0.75, max=1)


def inner_frames_in_place(self: Any, x: Any) -> Any:
    """Writes to frames that end before the last one, and to the first ones."""
    x = self.first(x).clone()
    x[..., 2:-3] += 0.5 * x[..., :-5]
    x[..., :3] *= 2
    return x


def write_every_other_frame(self: Any, x: Any) -> Any:
    """Writes to each second frame: signs, as RAVE's filter bank has them, and frames between others."""
    x = self.first(x)
    signs = torch.ones_like(x)
    signs[:, 1::2, 1::2] = -1
    between = torch.zeros(*x.shape[:-1], 2 * x.shape[-1])
    between[..., ::2] = x * signs
    between[..., 1::2] = x.abs()
    return between


def clipped_view(self: Any, x: Any) -> Any:
    """An assignment through views of a slice, as DCCRN's last one."""
    return torch.clamp_((self.first(x) * 2)[..., 1:-1].squeeze(0), -1, 1)


def written_into_zeros(self: Any, x: Any) -> Any:
    """Zeros that are longer than the stream, as SudoRM-RF pads it."""
    padded = torch.zeros(1, 1, x.shape[-1] + 3)
    padded[..., 1 : x.shape[-1] + 1] = x
    return self.first(padded)


def faded_ends(self: Any, x: Any) -> Any:
    """Ramps on the first and the last frames, and single and inner frames that are overwritten."""
    x = self.first(x).clone()
    x[..., :3] *= torch.linspace(0, 1, 3)
    x[..., -3:] *= torch.linspace(1, 0, 3)
    x[:, 1, 3:5] = 0.5
    x[..., 5] = 0
    return x


def rolled_frames(self: Any, x: Any) -> Any:
    """Shifts by one frame whose frame from the other end is overwritten or dropped."""
    before, after = torch.roll(x, 1, -1), torch.roll(x, -1, dims=2)
    before[..., 0] = 0
    after[..., -1:] = 0
    return self.first(after - 0.9 * before)[..., 2:] + torch.roll(self.first(x), 2, -1)[..., 2:]


def attention_without_heads(self: Any, x: Any) -> Any:
    """Attention of [batch, frames, features] within a window of 4 frames."""
    x = self.first(x).transpose(1, 2)
    place = torch.arange(x.shape[1])
    distance = place[:, None] - place
    return F.scaled_dot_product_attention(x, self.own(x), x, attn_mask=(distance >= 0) & (distance < 4))


def assigned_by_mask(self: Any, x: Any) -> Any:
    """Numbers assigned where a condition holds."""
    x = self.first(x).clone()
    x[x < 0] = 0.25
    return x


@pytest.mark.parametrize(
    "forward",
    [
        faded_ends,
        rolled_frames,
        attention_without_heads,
        assigned_by_mask,
        emphasis_in_place,
        inner_frames_in_place,
        write_every_other_frame,
        clipped_view,
        written_into_zeros,
        clamps_by_mixed_numbers,
    ],
)
def test_idioms_inside_of_a_module_stream(forward: Callable[[Any, Any], Any]) -> None:
    torch.manual_seed(0)
    options = {"dynamic": {"x": {2: "T"}}, "lengths": [4, 5, 33]}
    report = pulse.verify(Module(forward), example=torch.randn(1, 1, 40), **options)
    assert report.original is not None
    assert report.original.lengths
    report.require()
