"""``python -m bench.faults``: the cost of the checks for faults, by models with and without them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from timeit import timeit
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

import pulse
from bench.measurement.timing import alternate
from pulse.models import PulsedModel
from pulse.program.native.native_program import NativeProgram

TABLE_ROWS, TABLE_WIDTH = 1000, 64
"""Shape of the table that tokens look up."""
ROUNDS, STEPS = 60, 200
"""Rounds in which the models alternate, and steps in each."""
PULSES = 16, 160
"""Frames of a pulse: a short one and a long one."""
Feeds = dict[str, np.ndarray]


def make_node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    """Return a node; names are separated by blanks."""
    return helper.make_node(op, inputs.split(), [output], **attributes)


def model(nodes: Sequence[NodeProto], feeds: Feeds, constants: Feeds) -> ModelProto:
    """Return a model of inputs [1, T] with the output y."""
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), [1, "T"])
        for name, array in feeds.items()
    ]
    stored = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(
        list(nodes), "bench", inputs, [helper.make_empty_tensor_value_info("y")], stored
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def models(frames: int) -> list[tuple[str, PulsedModel, Feeds]]:
    """Return the name, the pulsed model and a pulse without a fault, for each case."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((TABLE_ROWS, TABLE_WIDTH)).astype(np.float32)
    taps = rng.standard_normal((TABLE_WIDTH, TABLE_WIDTH, 3)).astype(np.float32)
    tokens = rng.integers(0, TABLE_ROWS, (1, frames))
    sound = rng.standard_normal((1, frames)).astype(np.float32)
    embedded = make_node("Gather", "table x", "e")
    turned = make_node("Transpose", "e", "f", perm=[0, 2, 1])
    cases: dict[str, tuple[list[NodeProto], Feeds, Feeds]] = {
        "embedding and convolution": (
            [embedded, turned, make_node("Conv", "f taps", "y", pads=[2, 0])],
            {"x": tokens},
            {"table": table, "taps": taps},
        ),
        "embedding": ([make_node("Gather", "table x", "y")], {"x": tokens}, {"table": table}),
        "float to i32": (
            [make_node("Mul", "x k", "m"), make_node("Cast", "m", "y", to=6)],
            {"x": sound},
            {"k": np.array(30000, np.float32)},
        ),
        "integer division": ([make_node("Div", "x d", "y")], {"x": tokens, "d": tokens + 1}, {}),
    }
    return [
        (
            name,
            pulse.load(model(nodes, feeds, constants)).analyse().declutter().pulsify(pulse=frames),
            feeds,
        )
        for name, (nodes, feeds, constants) in cases.items()
    ]


def compare(without_checks: Callable[[], object], with_checks: Callable[[], object]) -> str:
    """Return the median time of both calls over alternating rounds, and the median of their ratio."""
    calls = {"without": without_checks, "with": with_checks}
    times = alternate(
        {name: partial(timeit, call, number=STEPS) for name, call in calls.items()}, ROUNDS, 1, 1
    )
    without_us, with_us = (times.median(name).p50_us / STEPS for name in calls)
    return f"{without_us:7.2f} us, {with_us:7.2f} us, ratio {times.ratio('with', 'without').median:.3f}"


def main() -> None:
    """Print the times of each model: a step in Python and the machine alone, without and with fault checks."""
    for frames in PULSES:
        for name, pulsed, feeds in models(frames):
            states = [NativeProgram(replace(pulsed, checks=checks)).spawn() for checks in ((), pulsed.checks)]
            print(f"{name}, pulse {frames}")
            print(f"  step     {compare(*(partial(state.step, feeds) for state in states))}")
            print(f"  machine  {compare(*(state.run_machine for state in states))}")


if __name__ == "__main__":
    main()
