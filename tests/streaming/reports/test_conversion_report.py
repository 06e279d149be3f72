"""The description of a model in pulses."""

import pytest
from onnx import helper

from tests.streaming.command import pulse, refusal, save, tone, write_sound

pytestmark = pytest.mark.usefixtures("working_folder")


def test_ports_of_any_name_are_shown() -> None:
    """A colon or a comma in a name does not end it."""
    nodes = [helper.make_node("Relu", ["in: a, b"], ["out: c"])]
    path = save("odd.onnx", nodes, {"in: a, b": [1, "T", 200]}, {"out: c": [1, "T", 200]})
    text = pulse("convert", path, "--pulse", 4).stdout
    assert "in: a, b  1,4,200,f32  1" in text
    assert "out: c  1,4,200,f32  1" in text
    assert "odd: takes in: a, b: 1,4,200,f32, not audio" in refusal(
        "run", path, write_sound("in.wav", tone(16000)), "out.wav", "--pulse", 4
    )
