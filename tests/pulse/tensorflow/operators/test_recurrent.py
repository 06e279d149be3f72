"""Cells and blocks of LSTM and GRU against numpy."""

import numpy as np

import pulse
from pulse import tensorflow
from tests.formulas import sigmoid
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, GraphDefBuilder
from tests.pulse.tensorflow.operator_results import results_of_operator


def test_block_lstm_clips_its_cells() -> None:
    builder = GraphDefBuilder()
    builder.place("x", -1, 1, 3)
    builder.const("longest", 6, np.int64)
    zeros = np.zeros((1, 2))
    for name, value in {
        "s": zeros,
        "w": 3 * normal_noise(5, 8),
        "p": zeros[0],
        "b": normal_noise(8, seed=2),
    }.items():
        builder.const(name, value)
    inputs = ("longest", "x", "s", "s", "w", "p", "p", "p", "b")
    builder.node("cell", "BlockLSTM", *inputs, T=F32, forget_bias=0.5, cell_clip=0.75)
    builder.node("y", "Identity", "cell:6", T=F32)
    typed = pulse.load(builder.data, inputs={"x": "6,1,3"}).model.analyse()
    x, w, b = normal_noise(6, 1, 3, seed=5), 3 * normal_noise(5, 8), normal_noise(8, seed=2)
    cs, h, expected = np.zeros((1, 2)), np.zeros((1, 2)), []
    for frame in x:
        i, ci, f, o = np.split(np.concatenate([frame, h], 1) @ w + b, 4, 1)
        cs = np.clip(np.tanh(ci) * sigmoid(i) + cs * sigmoid(f + 0.5), -0.75, 0.75)
        h = np.tanh(cs) * sigmoid(o)
        expected.append(h)
    np.testing.assert_allclose(typed.run(x)["y"], np.stack(expected), rtol=1e-5, atol=1e-5)


def test_a_cell_is_a_frame_of_a_block() -> None:
    x, cs, h = normal_noise(1, 1, 3), normal_noise(1, 2, seed=1), normal_noise(1, 2, seed=2)
    peeps = [normal_noise(2, seed=seed) for seed in (3, 4, 5)]
    weights = (normal_noise(5, 8), *peeps, normal_noise(8, seed=6))
    how = {"forget_bias": 0.5, "cell_clip": 0.75, "use_peephole": True}
    cells = results_of_operator("LSTMBlockCell", (x[0], cs, h, *weights), 7, **how)
    builder = GraphDefBuilder()
    builder.place("x", 1, 1, 3)
    for place, value in enumerate((cs, h, *weights)):
        builder.const(f"c{place}", value)
    builder.const("longest", 1, np.int64)
    builder.node("y", "BlockLSTM", "longest", "x", *(f"c{place}" for place in range(7)), T=F32, **how)
    names = ["y", *(f"y:{slot}" for slot in range(1, 7))]
    frames = tensorflow.load(builder.data, outputs=names).analyse().run(x)
    for name, cell in zip(names, cells):
        np.testing.assert_allclose(cell, frames[name][0], rtol=1e-5, atol=1e-6)


def test_a_gated_cell_agrees_with_numpy() -> None:
    x, h = normal_noise(1, 3), normal_noise(1, 2, seed=1)
    w_ru, w_c, b_ru, b_c = (normal_noise(*dims, seed=2) for dims in ((5, 4), (5, 2), (4,), (2,)))
    outputs = results_of_operator("GRUBlockCell", (x, h, w_ru, w_c, b_ru, b_c), 4)
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ w_ru + b_ru), 2, 1)
    c = np.tanh(np.concatenate([x, h * r], 1) @ w_c + b_c)
    for array, expected in zip(outputs, (r, u, c, u * h + (1 - u) * c)):
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)
