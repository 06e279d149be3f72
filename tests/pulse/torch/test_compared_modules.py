"""A constant that an exporter writes for the example's length alone is found by running the module and the model."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pulse
from tests.pulse.torch.exporter import F, nn, torch

T = {"x": {2: "T"}}


class FunctionModule(nn.Module):
    """A module with a forward that is given."""

    def __init__(self, forward: Callable[..., Any]) -> None:
        super().__init__()
        self.function = forward

    def forward(self, x: Any) -> Any:
        return self.function(x)


class Demucs(nn.Module):
    """The denoiser of Défossez, Synnaeve and Adi, Real Time Speech Enhancement in the Waveform Domain (2020).

    Without resampling and normalisation: strided convolutions with gates, an LSTM, transposed convolutions that add
    what the encoder has kept, on sound that is padded so that the strides fit.
    """

    def __init__(self, hidden: int = 8, depth: int = 5, kernel: int = 8, stride: int = 4) -> None:
        super().__init__()
        self.depth, self.kernel, self.stride = depth, kernel, stride
        self.encoder, self.decoder = nn.ModuleList(), nn.ModuleList()
        channels = 1
        for index in range(depth):
            self.encoder.append(
                nn.Sequential(
                    nn.Conv1d(channels, hidden, kernel, stride),
                    nn.ReLU(),
                    nn.Conv1d(hidden, 2 * hidden, 1),
                    nn.GLU(1),
                )
            )
            decode = [
                nn.Conv1d(hidden, 2 * hidden, 1),
                nn.GLU(1),
                nn.ConvTranspose1d(hidden, channels, kernel, stride),
            ]
            self.decoder.insert(0, nn.Sequential(*decode, *([nn.ReLU()] if index else [])))
            channels, hidden = hidden, 2 * hidden
        self.lstm = nn.LSTM(channels, channels, 2)

    def valid_length(self, length: int) -> int:
        """The next length that the strides fit."""
        for _ in range(self.depth):
            length = max(math.ceil((length - self.kernel) / self.stride) + 1, 1)
        for _ in range(self.depth):
            length = (length - 1) * self.stride + self.kernel
        return operator.index(length)

    def forward(self, mix: Any) -> Any:
        length = mix.shape[-1]
        x = F.pad(mix, (0, self.valid_length(length) - length))
        skips: list[Any] = []
        for encode in self.encoder:
            x = encode(x)
            skips.append(x)
        x = self.lstm(x.permute(2, 0, 1))[0].permute(1, 2, 0)
        for decode in self.decoder:
            skip = skips.pop()
            x = decode(x + skip[..., : x.shape[-1]])
        return x[..., :length]


def test_demucs_differs_at_other_lengths() -> None:
    """``operator.index`` fixes its padding: 2e-6 at the end of a shorter input, and no more than 4,436 frames."""
    torch.manual_seed(0)
    module, example = Demucs(), torch.randn(1, 1, 4096)
    with pytest.raises(
        pulse.LoadError, match=r"Demucs: .* at T = 1366 it differs: output .*, frame 1\d\d\d, "
    ):
        pulse.from_torch(module, example, {"mix": {2: "T"}})
    with pytest.raises(
        pulse.LoadError,
        match=r"Demucs: .* at T = 8193 it .*: the module returns shape \[1, 1, 8193\], the model \[1, 1, 4436\];",
    ):
        pulse.from_torch(module, example, {"mix": {2: "T"}}, lengths=[{"T": 8193}])


def test_a_branch_that_the_example_took_is_found() -> None:
    """The shapes do not show the branch; ``compare=False`` and lengths that are given let it pass."""
    module = FunctionModule(lambda x: x * 2 if x.shape[-1] > 10 else x * 3)
    example = torch.randn(1, 3, 20)
    with pytest.raises(
        pulse.LoadError, match=r"at T = 7 .*, frame 0, at \[0, 0, 0\]: the module returns .*; so PyTorch"
    ):
        pulse.from_torch(module, example, T)
    for let in (
        pulse.from_torch(module, example, T, compare=False),
        pulse.from_torch(module, example, T, lengths=[]),
    ):
        assert str(let.inputs["x"]) == "1,3,T,f32"
    pulse.from_torch(module, example, T, lengths=[{"T": 11}, {"T": 33}])
    with pytest.raises(pulse.LoadError, match="at T = 5 it differs"):
        pulse.from_torch(module, example, T, lengths=[{"T": 11}, {"T": 5}])


def sum_by_doubling(x: Any) -> Any:
    """Decaying sums, of twice as many frames in each round: for random inputs, late rounds change little."""
    gate, reach = torch.sigmoid(x), 1
    while reach < x.shape[-1]:
        x = torch.cat([x[..., :reach], x[..., reach:] + gate[..., reach:] * x[..., :-reach]], -1)
        gate = torch.cat([gate[..., :reach], gate[..., reach:] * gate[..., :-reach]], -1)
        reach *= 2
    return x


def test_a_condition_that_longer_inputs_change_is_warned_of() -> None:
    """Not if the model refuses these lengths, as they exceed its table."""
    with pytest.warns(
        pulse.PulseWarning, match=r"while reach < .* changes at T = 65; the model always takes"
    ):
        pulse.from_torch(FunctionModule(sum_by_doubling), torch.randn(1, 2, 40), T)
    table = torch.randn(64)

    def within_table(x: Any) -> Any:
        if x.shape[-1] > 64:
            raise ValueError("too long")
        return x + table[: x.shape[-1]]

    pulse.from_torch(FunctionModule(within_table), torch.randn(1, 2, 20), T)


def test_the_lengths_of_two_symbols_are_both_varied() -> None:
    """Each is varied; a batch of any size, and sound with features that are a quarter as long."""

    class Conditioned(nn.Module):
        def forward(self, sound: Any, features: Any) -> Any:
            return sound.reshape(sound.shape[0], -1, 4).mean(-1) + features

    axes = {"sound": {0: "B", 1: "T"}, "features": {0: "B", 1: "S"}}
    model = pulse.from_torch(Conditioned(), (torch.randn(2, 20), torch.randn(2, 5)), axes)
    assert str(model.inputs["features"]) == "B,S,f32"


def test_integers_stay_within_the_example() -> None:
    """Tokens beyond the table would be refused by the module, at every length."""

    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(7, 4)

        def forward(self, token: Any, mask: Any, level: Any) -> Any:
            if torch.compiler.is_exporting():
                return self.table(token) * mask[..., None] * level.log()[..., None]
            assert token.max() < 7
            assert (mask == (token % 2 == 0)).all()
            assert (level > 0).all()
            return self.table(token) * mask[..., None] * level.log()[..., None]

    token = torch.randint(0, 7, (1, 20))
    example = {"level": torch.rand(1, 20) + 0.1, "token": token, "mask": token % 2 == 0}
    model = pulse.from_torch(Tokens(), example, {name: {1: "T"} for name in example})
    assert [str(fact) for fact in model.inputs.values()] == ["1,T,i64", "1,T,bool", "1,T,f32"]


def test_outputs_may_be_nested_missing_or_complex() -> None:
    """A dict, a tuple, None, complex numbers, a state that has no time."""

    def forward(x: Any) -> Any:
        return {"wave": x * 2, "more": (x.sum(-1), None, [torch.fft.rfft(x, dim=1)])}

    typed = pulse.from_torch(FunctionModule(forward), torch.randn(1, 4, 20), T).analyse()
    assert [str(fact) for fact in typed.outputs.values()] == ["1,4,T,f32", "1,4,f32", "1,3,T,2,f32"]


@dataclass
class Result:
    """The result of an author's module."""

    wave: Any
    parts: Any


def test_outputs_may_be_dataclasses() -> None:
    """Fields name the outputs; a dataclass may be in a list of another one."""

    def forward(x: Any) -> Any:
        return Result(x * 2, [Result(x.sum(1), None)])

    typed = pulse.from_torch(FunctionModule(forward), torch.randn(1, 4, 20), T).analyse()
    assert {name: str(fact) for name, fact in typed.outputs.items()} == {
        "wave": "1,4,T,f32",
        "parts_0_wave": "1,T,f32",
    }


def test_without_dynamic_axes_shapes_are_those_of_the_example() -> None:
    """They are compared on the example alone; an exporter's mistake is found there too."""
    model = pulse.from_torch(nn.Linear(3, 4), torch.zeros(1, 3), {})
    assert str(model.inputs["input"]) == "1,3,f32"


def test_a_module_that_differs_while_exported_is_found() -> None:
    """The module counts one run too many while it is exported; afterwards it has its own state again."""

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("runs", torch.zeros(3, 1))

        def forward(self, x: Any) -> Any:
            self.runs.add_(1)
            return x.mul_(self.runs + torch.compiler.is_exporting())

    module, example = Counting(), torch.randn(1, 3, 20)
    before = example.clone()
    with pytest.raises(
        pulse.LoadError,
        match=r"Counting: the exported model differs from the module on the example itself, .*: output",
    ):
        pulse.from_torch(module, example, T)
    assert torch.equal(module.runs, torch.zeros(3, 1))
    assert torch.equal(example, before)


def test_a_module_is_compared_in_its_state_and_keeps_it() -> None:

    class Running(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("level", torch.full((3, 1), 2.0))

        def forward(self, x: Any) -> Any:
            y = x * self.level
            self.level.mul_(0.5)
            return y

    module = Running()
    typed = pulse.from_torch(module, torch.randn(1, 3, 20), T).analyse()
    assert torch.equal(module.level, torch.full((3, 1), 2.0))
    x = np.ones((1, 3, 30), np.float32)
    np.testing.assert_array_equal(next(iter(typed.run(x).values())), 2 * x)


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda x: torch.rand_like(x), id="torch"),
        pytest.param(
            lambda x: torch.from_numpy(np.random.default_rng().standard_normal((3, 1)).astype(np.float32)),
            id="numpy",
        ),
    ],
)
def test_random_numbers_of_a_module_are_named(draw: Any) -> None:
    """Two runs on the same input differ; the generator of torch keeps its state."""
    state = torch.get_rng_state()
    with pytest.raises(
        pulse.LoadError, match=r"FunctionModule: output .* differs between two runs on the same input"
    ):
        pulse.from_torch(
            FunctionModule(lambda x: x + draw(x)), torch.randn(1, 3, 20, generator=torch.Generator()), T
        )
    assert torch.equal(state, torch.get_rng_state())


def test_a_module_that_takes_no_longer_input_is_warned_of() -> None:

    class Placed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.randn(1, 3, 20))

        def forward(self, x: Any) -> Any:
            return x + self.table[..., : x.shape[-1]]

    with pytest.warns(
        pulse.PulseWarning, match=r"Placed: .* longer than the example's \(T = 20\) .* at T = 41: Runtime"
    ):
        pulse.from_torch(Placed(), torch.randn(1, 3, 20), T)


def test_a_module_that_takes_no_other_length_needs_given_lengths() -> None:
    def forward(x: Any) -> Any:
        if not torch.compiler.is_exporting() and x.shape[-1] not in (20, 33):
            raise ValueError("20 or 33 frames")
        return x * 2

    with pytest.raises(
        pulse.InputError,
        match=r"FunctionModule: T may have any length, but .* at T = 41: ValueError: 20 or 33 frames; give lengths",
    ):
        pulse.from_torch(FunctionModule(forward), torch.randn(1, 3, 20), T)
    pulse.from_torch(FunctionModule(forward), torch.randn(1, 3, 20), T, lengths=[{"T": 33}])


@pytest.mark.parametrize(
    ("module", "example", "lengths", "words"),
    [
        pytest.param(
            nn.LazyConv1d(4, 3),
            torch.zeros(1, 3, 10),
            None,
            "LazyConv1d has lazy layers whose parameters are not initialised yet",
            id="lazy layer",
        ),
        pytest.param(
            nn.Conv1d(3, 4, 3),
            torch.zeros(1, 3, 10),
            [{"S": 3}],
            "lengths: unknown symbol 'S'; choose one of T",
            id="unknown symbol",
        ),
        pytest.param(
            nn.Bilinear(3, 3, 1),
            (torch.zeros(2, 9, 3), torch.zeros(2, 8, 3)),
            None,
            "T is 9 frames in the example of input1",
            id="unequal lengths",
        ),
    ],
)
def test_mismatched_modules_examples_and_lengths_are_refused(
    module: Any, example: Any, lengths: Any, words: str
) -> None:
    axis = 1 if isinstance(example, tuple) else 2
    with pytest.raises(pulse.InputError, match=words):
        dynamic = {place: {axis: "T"} for place in range(len(example) if isinstance(example, tuple) else 1)}
        pulse.from_torch(module, example, dynamic, lengths=lengths)
