"""An export in one thread, and what other threads see of it."""

import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.torch.quiet_exporter import silence_exporter
from tests.pulse.torch.exporter import torch


def in_thread(function: Callable[[], Any]) -> Any:
    """The result of a function in its own thread."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_output_of_other_threads_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prints, records and warnings of this thread are left out, and of the others none."""
    out, log = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    logger, handler = logging.getLogger("torch.of.this.test"), logging.StreamHandler(log)
    logger.addHandler(handler)

    def speak(name: str) -> list[str]:
        print(name)
        logger.error(name)
        with pytest.raises(UserWarning, match=name):
            warnings.warn(name, UserWarning, stacklevel=1)
        return [name]

    def speak_softly() -> None:
        print("mine")
        logger.error("mine")
        warnings.warn("mine", UserWarning, stacklevel=1)

    with silence_exporter():
        speak_softly()
        assert in_thread(lambda: speak("theirs")) == ["theirs"]
    logger.removeHandler(handler)
    assert out.getvalue() == "theirs\n"
    assert log.getvalue() == "theirs\n"
    assert sys.stdout is out
    assert speak("again")


class Meanwhile(torch.nn.Module):
    """A GRU whose forward lets another thread run one, and divide sizes, in the middle of an export."""

    def __init__(self, other: Callable[[], Any]) -> None:
        super().__init__()
        self.gru = torch.nn.GRU(3, 3, batch_first=True)
        self.other = other

    def forward(self, x: Any) -> Any:
        if torch.compiler.is_exporting():
            self.other()
        return self.gru(x[:, : int(x.shape[1] / 1)])[0]


def test_layers_of_other_threads_compute_during_an_export() -> None:
    """Recurrent layers give numbers there; ``int`` and ``len`` are Python's."""
    layer = torch.nn.GRU(2, 2, batch_first=True).eval()
    x = torch.randn(1, 7, 2)
    expected = layer(x)[0].detach()
    results: list[Any] = []

    def compute() -> Any:
        with torch.no_grad():
            return layer(x)[0], int(7 / 2), len(x), max(2, 5)

    module = Meanwhile(lambda: results.append(in_thread(compute)))
    model = pulse.from_torch(module, torch.randn(1, 20, 3), dynamic={"x": {1: "T"}})
    assert results
    for result, half, count, largest in results:
        assert torch.equal(result, expected)
        assert (half, count, largest) == (3, 1, 5)
    assert len(model.analyse().outputs) == 1


def test_exports_of_several_threads_wait_for_each_other() -> None:
    """Each model is its own module's."""
    modules = [torch.nn.Conv1d(2, 2, size).eval() for size in (1, 2, 3)]
    x = torch.randn(1, 2, 30)
    models: dict[int, Any] = {}

    def convert(number: int) -> None:
        models[number] = pulse.from_torch(modules[number], x, dynamic={0: {2: "T"}}).analyse()

    threads = [threading.Thread(target=convert, args=(number,)) for number in range(len(modules))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, module in enumerate(modules):
        (output,) = models[number].run(x.numpy()).values()
        np.testing.assert_allclose(output, module(x).detach().numpy(), atol=1e-5)
