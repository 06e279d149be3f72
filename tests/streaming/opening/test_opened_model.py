"""The pulse that commands choose for an opened model."""

from pathlib import Path

import pytest

import pulse
from streaming.opening.opened_model import OpenedModel
from tests.pulse.cases.build import node
from tests.pulse.chunks import models


def open_pooling(folder: Path, factor: int, pulse_frames: int | None = None) -> OpenedModel:
    """Open a model at 400 Hz whose pulses are multiples of the factor."""
    nodes = [node("MaxPool", "x", "y", kernel_shape=[factor], strides=[factor])]
    path = folder / f"{factor}.onnx"
    path.write_bytes(models.build(nodes, {"x": [1, 1, "T"]}, {"y": [1, 1, None]}).SerializeToString())
    return OpenedModel(pulse.load(path), 400, "option", pulse_frames)


@pytest.mark.parametrize(("factor", "pulse_frames"), [(1, 4), (3, 6), (8, 8)])
def test_the_default_pulse_lasts_about_ten_milliseconds(
    tmp_path: Path, factor: int, pulse_frames: int
) -> None:
    """The pulse is the smallest valid one of at least 10 ms, which is 4 frames here."""
    assert open_pooling(tmp_path, factor).pulsify().pulse == pulse_frames


def test_unsuitable_pulses_of_a_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(pulse.PulsifyError, match="multiple of 8: use 8"):
        open_pooling(tmp_path, 8, 4).pulsify()
