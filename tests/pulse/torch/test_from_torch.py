"""PyTorch modules: streamed equals what PyTorch computes offline, and a length that is baked in is named."""

from typing import Any

import numpy as np
import pytest

import pulse
from pulse.models import TypedModel
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import run_whole
from tests.pulse.torch.exporter import F, nn, torch


class Convolutions(nn.Module):
    """Causal convolution, normalisation, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 5)
        self.norm = nn.BatchNorm1d(4)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.dropout(self.norm(self.conv(F.pad(x, (4, 0))))))


class Recurrent(nn.Module):
    """Features through a GRU, with a state that may be given."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 4, batch_first=True)

    def forward(self, x: Any, h: Any = None) -> Any:
        return self.gru(x, h)[0]


class ExportedSpectrum(nn.Module):
    """Power of a short-time Fourier transform, through a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.layer = nn.Linear(9, 5)

    def forward(self, sound: Any) -> Any:
        z = torch.stft(sound, 16, 4, window=self.window, center=False, return_complex=True)
        power = torch.view_as_real(z).pow(2).sum(-1).transpose(1, 2)
        return torch.sigmoid(self.layer(torch.log1p(power)))


class Attention(nn.Module):
    """Heads that see five frames back."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        place = torch.arange(x.shape[1])
        back = place[:, None] - place[None, :]
        return self.heads(x, x, x, attn_mask=(back < 0) | (back > 5), need_weights=False)[0]


class Enhancer(nn.Module):
    """A causal encoder, a GRU over time, a transposed decoder and a mask, as small speech enhancers are built."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv2d(2, 4, (3, 5), stride=(1, 2), padding=(0, 2), groups=2)
        self.norm = nn.BatchNorm2d(4)
        self.act = nn.PReLU(4)
        self.gru = nn.GRU(32, 16, batch_first=True)
        self.out = nn.Linear(16, 32)
        self.decoder = nn.ConvTranspose2d(4, 2, (3, 5), stride=(1, 2), padding=(2, 2))

    def forward(self, x: Any) -> Any:
        h = self.act(self.norm(self.encoder(F.pad(x, (0, 0, 2, 0)))))
        batch, channels, frames, bins = h.shape
        rows = h.permute(0, 2, 1, 3).reshape(batch, frames, channels * bins)
        y = self.out(self.gru(rows)[0]).reshape(batch, frames, channels, bins).permute(0, 2, 1, 3)
        return torch.tanh(self.decoder(F.pad(h + y, (0, 0, 2, 0)))) * x


class Unrolled(nn.Module):
    """A loop over time: the exporter can only write the frames of the example."""

    def forward(self, x: Any) -> Any:
        frames: list[Any] = []
        while len(frames) < x.shape[-1]:
            frames.append(x[:, :, len(frames)])
        return torch.stack(frames, -1)


class Averaged(nn.Module):
    """Two inputs of one length; a mean over time cannot stream."""

    def forward(self, left: Any, right: Any) -> Any:
        return left - right.mean(-1, keepdim=True)


def seed_module(module: type[Any]) -> Any:
    torch.manual_seed(0)
    return module()


def assert_streams(module: Any, example: Any, dynamic: Any, long: Any) -> TypedModel:
    typed = pulse.from_torch(module, example, dynamic).analyse()
    model = typed.declutter().pulsify()
    expected = module.eval()(*long).detach().numpy()
    feeds = dict(zip(typed.inputs, (value.numpy() for value in long)))
    for backend in ("numpy", "numba"):
        outputs, _ = run_whole(compile_model(model, backend).spawn(), feeds, np.nan)
        np.testing.assert_allclose(next(iter(outputs.values())), expected, rtol=1e-4, atol=1e-5)
    return typed


def test_convolutions_keep_names_and_modes() -> None:
    """The symbol keeps its name, the module its modes, the model the module's name."""
    module = seed_module(Convolutions).train()
    module.norm.eval()
    typed = assert_streams(module, torch.randn(1, 3, 10), {"x": {2: "time"}}, [torch.randn(1, 3, 37)])
    assert str(typed.inputs["x"]) == "1,3,time,f32"
    assert typed.title == "Convolutions"
    module = seed_module(Convolutions).train()
    module.norm.eval()
    pulse.from_torch(module, (torch.randn(1, 3, 10),), {0: {2: "T"}})
    assert (module.training, module.dropout.training, module.norm.training) == (True, True, False)


def test_a_recurrent_layer_streams_with_inputs_by_name() -> None:
    example = {"x": torch.randn(1, 10, 3)}
    assert_streams(seed_module(Recurrent), example, {"x": {1: "T"}}, [torch.randn(1, 37, 3)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "shape", "axis", "frames"),
    [(ExportedSpectrum, (1, 160), 1, 400), (Attention, (1, 12, 8), 1, 40), (Enhancer, (1, 2, 12, 15), 2, 40)],
)
def test_larger_modules_stream(module: type[Any], shape: tuple[int, ...], axis: int, frames: int) -> None:
    long = [size if place != axis else frames for place, size in enumerate(shape)]
    assert_streams(seed_module(module), torch.randn(shape), {0: {axis: "T"}}, [torch.randn(long)])


def test_a_length_that_is_baked_in_is_named() -> None:
    with pytest.raises(
        pulse.LoadError, match=r"Unrolled: .* baked .* axis 2 of x \(T\) is fixed to 10; .*a while loop over"
    ):
        pulse.from_torch(Unrolled(), torch.randn(1, 3, 10), {"x": {2: "T"}})


def test_a_second_export_gives_the_same_input() -> None:
    """Each export of a recurrent layer is as the first one."""
    for _ in range(2):
        model = pulse.from_torch(seed_module(Recurrent), torch.randn(1, 10, 3), {"x": {1: "T"}})
        assert str(model.inputs["x"]) == "1,T,3,f32"


def test_a_refusal_names_the_line_of_the_module() -> None:
    examples = (torch.randn(1, 3, 10), torch.randn(1, 3, 10))
    model = pulse.from_torch(Averaged(), examples, {"left": {2: "T"}, "right": {2: "T"}})
    with pytest.raises(pulse.PulsifyError, match=r"test_from_torch\.py line \d+"):
        model.analyse().declutter().pulsify()


def test_errors_of_the_module_are_passed_on() -> None:
    class Broken(nn.Module):
        def forward(self, x: Any) -> Any:
            raise RuntimeError("no such layer")

    with pytest.raises(
        pulse.InputError, match="Broken does not run on the example: RuntimeError: no such layer"
    ):
        pulse.from_torch(Broken(), torch.randn(1, 3, 10), {"x": {2: "T"}})


@pytest.mark.parametrize(
    ("example", "dynamic", "words"),
    [
        pytest.param(
            torch.zeros(1, 3, 10),
            {"y": {2: "T"}},
            "dynamic: unknown input 'y'; choose one of x",
            id="unknown input",
        ),
        pytest.param(
            torch.zeros(1, 3, 10), {3: {2: "T"}}, "dynamic: unknown input '3'", id="input by number"
        ),
        pytest.param(torch.zeros(1, 3, 10), {"x": {3: "T"}}, "has 3 axes, so none is 3", id="no such axis"),
        pytest.param(torch.zeros(1, 3, 1), {"x": {2: "T"}}, "the example has 1 frame,", id="one frame"),
        pytest.param(
            (torch.zeros(1), 2, 3), {}, "3 examples for the inputs x, h of forward", id="too many examples"
        ),
        pytest.param(
            {"z": torch.zeros(1)}, {}, "forward: unknown input 'z'; choose one of x, h", id="unknown example"
        ),
        pytest.param(
            (torch.zeros(1, 3, 10), 2),
            {"h": {0: "T"}},
            "its example is not a tensor: int",
            id="int as stream",
        ),
        pytest.param(
            torch.zeros(1, 3, 10),
            {"x": [2]},
            r'dynamic of x: \[2\] names no symbols; .*{"x": {0: "T"}}',
            id="axes without symbols",
        ),
        pytest.param(
            torch.zeros(1, 3, 10),
            {"x": {2: "1-T"}},
            "dynamic of x, axis 2: '1-T' is not a name; give one such as 'T', or a multiple of one such as '32",
            id="no name",
        ),
        pytest.param(
            torch.zeros(1, 3, 10),
            {"x": {2: "4*T"}},
            r"4\*T is 10 frames in the example of x, which is no multiple of 4; give a longer or a shorter example",
            id="no multiple",
        ),
    ],
)
def test_examples_that_do_not_fit_are_refused(example: Any, dynamic: Any, words: str) -> None:
    with pytest.raises(pulse.InputError, match=words):
        pulse.from_torch(Recurrent(), example, dynamic)


def test_a_value_other_than_a_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pulse.InputError, match=r"takes a torch\.nn\.Module, not int"):
        pulse.from_torch(3, torch.zeros(1))
    for package, name in (("onnxscript", "onnxscript"), ("torch", "PyTorch")):
        monkeypatch.setattr(
            pulse.torch.module_loading, "find_spec", lambda name, missing=package: name != missing or None
        )
        with pytest.raises(pulse.InputError, match=f"a module needs {name}; pip install 'pulse-stream"):
            pulse.from_torch(3, torch.zeros(1))
