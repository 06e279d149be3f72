"""The delay is the minimum that the offline model allows, measured on the offline model alone."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pulse.api import verify
from pulse.errors import FactError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.conv import Conv, ConvTranspose
from pulse.ops.op import PadMode
from pulse.pulsify.driver import pulsify
from tests.pulse.model_builder import ModelBuilder, pads_of
from tests.pulse.pulsify.delay_oracle import smallest_delay

MIRRORS = ("edge", "reflect")


class Chain:
    """A random chain whose taps are all away from 0; ``reach`` bounds how far a frame looks, in input frames."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = ModelBuilder(seed, x="1,1,T")
        self.x = self.builder["x"]
        self.reach = 1

    def small(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def rate(self) -> float:
        return float(self.builder.length(self.x).slope(next(iter(self.builder.dim("T").symbols))))

    def stride(self) -> int:
        return self.small(1, 2) if self.rate() >= 1 else 1

    def pads(self, max_pad: int) -> tuple[int, int]:
        return (self.small(0, max_pad), self.small(0, max_pad)) if self.small(0, 1) else (0, 0)

    def grow(self, step: str) -> None:
        before = self.rate()
        self.x, frames = getattr(self, step)(self.builder, self.x)
        self.reach += int(np.ceil((frames + 2) / min(before, self.rate())))

    def conv(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        kernel, dilation, pads = self.small(1, 3), self.small(1, 2), self.pads(2)
        return builder.conv(x, kernel, pads, self.stride(), dilation), (kernel - 1) * dilation + sum(pads)

    def pool(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        kernel = self.small(1, 3)
        kind = ("sum", "max", "average")[self.small(0, 2)]
        y = builder.pool(x, kind, kernel, self.pads(kernel - 1), self.stride(), bool(self.small(0, 1)))
        return y, 3 * kernel

    def deconv(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        stride = self.small(1, 2) if self.rate() <= 1 else 1
        kernel = self.small(1, 4)
        pads = (self.small(0, kernel - 1), 0) if self.small(0, 1) else (0, 0)
        return builder.deconv(x, kernel, stride, pads, self.small(0, stride - 1)), kernel + 2

    def gapped_kernel(self, kernel: Array, taps: int) -> Array:
        """A kernel with zeros before its taps and after them, as a window of samples has."""
        first = self.small(0, 4)
        return np.pad(kernel, [(0, 0), (0, 0), (first, self.small(0, taps - first))])

    def gapped_conv(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        kernel = self.gapped_kernel(builder.taps(2, builder.channels(x), self.small(1, 3)), 5)
        op = Conv((self.stride(),), (dilation := self.small(1, 2),), pads_of(self.pads(2)))
        return builder.add("gapped", op, x, builder.constant(kernel, "taps")), kernel.shape[2] * dilation + 4

    def gapped_deconv(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        stride = self.small(1, 3) if self.rate() <= 1 else 1
        kernel = self.gapped_kernel(builder.taps(builder.channels(x), 2, self.small(1, 4)), 6)
        before = self.small(0, 2)
        op = ConvTranspose((stride,), (1,), pads_of((before, 0)), (self.small(0, stride - 1),))
        return builder.add("gapped", op, x, builder.constant(kernel, "taps")), kernel.shape[2] + 4

    def pad(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        pads = self.pads(2)
        return builder.pad(x, pads, fill=0.5), sum(pads)

    def ends(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        head, tail = self.pads(2)
        return builder.ends(x, head, tail), head + tail

    def cut(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        start, short = self.small(0, 2), self.small(0, 1)
        return builder.cut(x, start, self.stride(), builder.length(x) - short), start + short + 2

    def branch(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        kernel = self.small(1, 3)
        before = self.small(0, kernel - 1)
        return builder.apply("add", x, builder.conv(x, kernel, (before, kernel - 1 - before))), kernel

    def edge(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        return builder.pad(x, self.pads(2), "edge"), 4

    def reflect(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        return builder.pad(x, self.pads(2), "reflect"), 6

    def symmetric(self, builder: ModelBuilder, x: OutletId) -> tuple[OutletId, int]:
        return builder.pad(x, self.pads(2), "symmetric"), 6


STEPS = ("conv", "pool", "deconv", "pad", "ends", "cut", "branch")
LINEAR = tuple(step for step in STEPS if step != "pool")
"""A maximum may hide the one frame that a mirrored one waits for."""


def compare_delays(typed: TypedModel, pulse: int, reach: int) -> tuple[int, int]:
    """The reported delay and the smallest possible one."""
    (port,) = pulsify(typed, pulse=pulse).outputs
    return port.delay, smallest_delay(typed, pulse, port.frames, reach)


def grow_chain(seed: int, steps: Sequence[str], last: Sequence[str] = ()) -> tuple[TypedModel, int, int]:
    """A chain, its reach, and a pulse for it."""
    chain = Chain(seed)
    for _ in range(chain.small(1, 4)):
        chain.grow(steps[chain.small(0, len(steps) - 1)])
    if last:
        chain.grow(last[chain.small(0, len(last) - 1)])
    typed = chain.builder.model(chain.x)
    return typed, chain.reach, pulsify(typed).pulse * chain.small(1, 3)


GAPPED = ("gapped_conv", "gapped_deconv")


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 100), marks=pytest.mark.slow)], ids=len)
def test_taps_without_weight_add_no_delay(seeds: range) -> None:
    """Kernels of convolutions and transposed ones have zeros before and after them."""
    reached: Counter[bool] = Counter()
    for seed in seeds:
        try:
            typed, reach, pulse = grow_chain(seed, STEPS, GAPPED)
        except FactError:
            continue
        reported, smallest = compare_delays(typed, pulse, reach)
        assert reported == smallest, (seed, pulse)
        reached[smallest > 0] += 1
    assert min(reached[True], reached[False]) >= len(seeds) // 5, reached


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 150), marks=pytest.mark.slow)], ids=len)
def test_random_chains_have_the_smallest_delay(seeds: range) -> None:
    """Convolutions, pools, deconvolutions, constant padding, slices and branches, of any order."""
    reached: Counter[str] = Counter()
    for seed in seeds:
        typed, reach, pulse = grow_chain(seed, STEPS)
        reported, smallest = compare_delays(typed, pulse, reach)
        assert reported == smallest, (seed, pulse)
        reached["delayed"] += smallest > 0
        reached["not delayed"] += smallest == 0
    assert min(reached["delayed"], reached["not delayed"]) >= len(seeds) // 4, reached


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 80), marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize(("steps", "mirrors"), [(STEPS, MIRRORS), (LINEAR, ("symmetric",))])
def test_random_chains_ending_in_mirrors_have_the_smallest_delay(
    steps: Sequence[str], mirrors: Sequence[str], seeds: range
) -> None:
    """Edge, reflect and symmetric padding whose new frames are themselves what the model gives.

    Where what is mirrored begins with constants (a left-context prefix), those are waited for although they are known.
    """
    reached: Counter[str] = Counter()
    for seed in seeds:
        try:
            typed, reach, pulse = grow_chain(seed, steps, mirrors)
        except FactError:
            continue
        reported, smallest = compare_delays(typed, pulse, reach)
        model = pulsify(typed, pulse=pulse)
        (mirror,) = model.typed.graph.outputs
        source = model.wires[model.typed.graph.node(mirror).inputs[0]].fact.stream
        assert source is not None
        assert reported == smallest, (seed, pulse)
        reached["prefix" if source.prefix_frames else "no prefix"] += 1
    assert reached["no prefix"] >= len(seeds) // 2, reached
    assert reached["prefix"] >= 1, reached


def mirrored_conv(mode: PadMode, pads: tuple[int, int]) -> Callable[[ModelBuilder], OutletId]:
    return lambda builder: builder.conv(builder.pad(builder["x"], pads, mode), 3)


@pytest.mark.parametrize(
    ("build", "smallest"),
    [
        (mirrored_conv("edge", (2, 0)), 0),
        (mirrored_conv("edge", (1, 1)), 1),
        (mirrored_conv("edge", (0, 2)), 2),
        (mirrored_conv("reflect", (1, 1)), 1),
    ],
    ids=["edge causal", "edge same", "edge end", "reflect same"],
)
@pytest.mark.parametrize("pulse", [1, 4])
def test_windows_over_mirrors_have_the_smallest_delay(
    build: Callable[[ModelBuilder], OutletId], smallest: int, pulse: int
) -> None:
    """Padding as exporters write it before a convolution of 3 taps."""
    builder = ModelBuilder(x="1,1,T")
    assert compare_delays(builder.model(build(builder)), pulse, 5) == (smallest, smallest)


@pytest.mark.parametrize(
    ("build", "smallest"),
    [
        (
            lambda builder: builder.conv(
                builder.pad(builder.pad(builder["x"], (2, 2), "reflect"), (1, 1)), 3
            ),
            2,
        ),
        (lambda builder: builder.conv(builder.pad(builder.pad(builder["x"], (2, 0), "edge"), (3, 0)), 3), 0),
        (
            lambda builder: builder.conv(
                builder.pad(builder.pad(builder["x"], (0, 2), "reflect"), (2, 0)), 3
            ),
            0,
        ),
        (
            lambda builder: builder.conv(
                builder.pad(builder.pad(builder.pad(builder["x"], (1, 1), "reflect"), (1, 0)), (1, 2)), 5
            ),
            1,
        ),
    ],
    ids=["both ends", "at the start", "apart", "twice"],
)
@pytest.mark.parametrize("pulse", [1, 4])
def test_windows_over_padded_mirrors_have_the_smallest_delay(
    build: Callable[[ModelBuilder], OutletId], smallest: int, pulse: int
) -> None:
    """The window fills in the constants and the mirrored frames."""
    builder = ModelBuilder(x="1,1,T")
    model = builder.model(build(builder))
    reported, smallest_correct = compare_delays(model, pulse, 9)
    assert reported == smallest_correct
    if pulse == 1:
        assert smallest_correct == smallest
    verify(model, pulse=pulse).require()


def test_the_oracle_finds_the_delays_of_models_made_by_hand() -> None:
    """A valid convolution looks 2 frames ahead, a causal one none; a gap of a deconvolution may be the end."""
    builder = ModelBuilder(x="1,1,T")
    assert smallest_delay(builder.model(builder.conv(builder["x"], 3)), 1, 1, 5) == 2
    assert smallest_delay(builder.model(builder.conv(builder.pad(builder["x"], (2, 0)), 3)), 1, 1, 5) == 0
    gaps = builder.pad(builder.deconv(builder["x"], 1, 2, name="gaps"), (0, 1), fill=7.0)
    assert smallest_delay(builder.model(gaps), 1, 2, 4) == 1
    assert smallest_delay(builder.model(gaps), 1, 2, 4, ends=False) == 0
    assert pulsify(builder.model(gaps), pulse=1).outputs[0].delay == 1
