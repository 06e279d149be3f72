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


@pytest.mark.parametrize(("last", "end"), [(5, "after 3 frames of every stream"), (1 << 60, None)])
def test_an_output_that_ends_before_its_stream_is_reported(
    tmp_path: Path, last: int, end: str | None
) -> None:
    """The frames from 2 to 5, as an exporter that fixed the length of its example writes them; or all from 2 on."""
    path = tmp_path / "cut.onnx"
    proto = models.build(
        [node("Slice", "x start end axis", "y")],
        {"x": [1, 1, "T"]},
        {"y": [1, 1, None]},
        {"start": [2], "end": [last], "axis": [2]},
    )
    path.write_bytes(proto.SerializeToString())
    opened = OpenedModel(pulse.load(path), 400, "option", 4)
    text = dict(opened.pairs(opened.pulsify())).get("end of y")
    assert text is None if end is None else text and text.startswith(end)
