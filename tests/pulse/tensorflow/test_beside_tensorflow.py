"""pulse works alike if TensorFlow is imported in the same process."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

START = """
import sys
import tensorflow as tf
import numpy as np
import pulse
"""
END = """
tf.saved_model.save(module, sys.argv[1], signatures=module.__call__)
call = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
state = pulse.stream(sys.argv[1], backend="numpy").spawn()
for block in np.random.default_rng(0).standard_normal(shape).astype(np.float32):
    expected = call(x=tf.constant(block))["y"].numpy()
    assert np.abs(state.step(block)["y"] - expected).max() < 1e-5
"""
VARIABLES = """
class Buffer(tf.Module):
    def __init__(self):
        self.past = tf.Variable(tf.zeros([1, 4, 3]))
        self.kernel = tf.Variable(tf.random.normal([4, 3, 2], seed=1))

    @tf.function(input_signature=[tf.TensorSpec([1, 1, 3], tf.float32, name="x")])
    def __call__(self, x):
        self.past.assign(tf.concat([self.past[:, 1:], x], 1))
        return {"y": tf.nn.conv1d(self.past, self.kernel, 1, "VALID")}


module, shape = Buffer(), (8, 1, 1, 3)
"""


LAYERS = """
keras = tf.keras
network = keras.Sequential(
    [
        keras.layers.Input(batch_shape=(1, 2, 6)),
        keras.layers.GRU(10, stateful=True, return_sequences=True),
        keras.layers.LSTM(5, stateful=True, return_sequences=True),
        keras.layers.Dense(3),
    ]
)


class Module(tf.Module):
    def __init__(self):
        self.network = network

    @tf.function(input_signature=[tf.TensorSpec([1, 2, 6], tf.float32, name="x")])
    def __call__(self, x):
        return {"y": self.network(x)}


module, shape = Module(), (8, 1, 2, 6)
"""


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed")
@pytest.mark.parametrize("code", [VARIABLES, LAYERS], ids=["variables", "layers"])
def test_a_saved_model_loads_in_a_process_with_tensorflow(tmp_path: Path, code: str) -> None:
    """Variables of the module, and those that stateful layers of Keras keep inside of themselves."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", START + code + END, str(tmp_path / "model")]
    subprocess.run(command, check=True, timeout=300, cwd=root)
