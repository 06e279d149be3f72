"""Pipelines of PyTorch's own transforms."""

from typing import Any

from bench.torch_codes.published_model import ModuleCase, import_torch, published_model


def _module_of(forward: Any) -> Any:
    torch = import_torch()

    class Written(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("window", torch.hann_window(64))
            self.gru = torch.nn.GRU(33, 33, batch_first=True)

        def forward(self, x: Any) -> Any:
            return forward(torch, self, x)

    return Written()


@published_model("stft, GRU mask, istft", "torch")
def mask_spectrum() -> ModuleCase:
    def forward(torch: Any, self: Any, x: Any) -> Any:
        z = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        mask = torch.sigmoid(self.gru(z.abs().transpose(1, 2))[0]).transpose(1, 2)
        return torch.istft(z * mask, 64, 16, window=self.window, length=x.shape[-1])

    return ModuleCase(_module_of(forward), import_torch().randn(1, 512), 16000, 16)


@published_model("stft, complex mask, istft", "torch")
def complex_masked() -> ModuleCase:
    def forward(torch: Any, self: Any, x: Any) -> Any:
        z = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        phase = self.gru(torch.log1p(z.abs()).transpose(1, 2))[0].transpose(1, 2)
        return torch.istft(z * torch.exp(1j * phase), 64, 16, window=self.window)

    return ModuleCase(_module_of(forward), import_torch().randn(1, 512), 16000, 16)


@published_model("stft, magnitude and phase, istft", "torch")
def polar() -> ModuleCase:
    def forward(torch: Any, self: Any, x: Any) -> Any:
        z = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        magnitude, phase = z.abs(), z.angle()
        mask = torch.sigmoid(self.gru(magnitude.transpose(1, 2))[0]).transpose(1, 2)
        return torch.istft(torch.polar(magnitude * mask, phase), 64, 16, window=self.window)

    return ModuleCase(_module_of(forward), import_torch().randn(1, 512), 16000, 16)


@published_model("linear interpolation", "torch")
def interpolate() -> ModuleCase:
    def forward(torch: Any, self: Any, x: Any) -> Any:
        return torch.nn.functional.interpolate(x, scale_factor=4, mode="linear")

    return ModuleCase(
        _module_of(forward), import_torch().randn(1, 4, 40), 100, options={"dynamic": {"x": {2: "T"}}}
    )
