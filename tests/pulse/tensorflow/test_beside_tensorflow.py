"""With TensorFlow imported in the same process, all works as without."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.pulse.tensorflow.saved import stateful

CODE = """
import sys
import tensorflow as tf
import numpy as np
import pulse

folder = sys.argv[1]
x = np.random.default_rng(0).standard_normal((5, 1, 4)).astype(np.float32)
call = tf.saved_model.load(folder).signatures["serving_default"]
state = pulse.stream(folder, axes={"x": 0, "y": 0}, backend="numpy").spawn()
for block in x:
    expected = call(x=tf.constant(block))["y"].numpy()
    assert np.abs(state.step(block)["y"] - expected).max() < 1e-5
"""


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed")
def test_a_saved_model_beside_tensorflow(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", CODE, str(stateful(tmp_path / "model"))]
    subprocess.run(command, check=True, timeout=300, cwd=root)
