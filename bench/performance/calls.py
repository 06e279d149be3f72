"""The time that Python adds to a step, for a model of one Relu."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from timeit import timeit

import numpy as np
from onnx import TensorProto, helper

import pulse
from bench.measurement.timing import alternate
from pulse.program.native.native_state import NativeState
from streaming import Session

MACHINE = "machine"
"""The name of the step without Python: the program's machine alone."""
PULSE = 16
"""Frames of a call."""
ROUNDS, CALLS = 200, 500
"""Rounds in which the kinds of calls alternate, and calls of a kind in each."""


@dataclass(frozen=True)
class CallTime:
    """The time of a call.

    name     the kind of call
    us       time of one call
    over_us  the same, less the machine's own time in the same rounds
    """

    name: str
    us: float
    over_us: float


def relu() -> bytes:
    """Return a model of one Relu over [1, T]."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, "T"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def calls() -> Mapping[str, Callable[[], object]]:
    """Return the calls, each of a separate stream. They write to existing arrays where they can."""
    program = pulse.stream(relu(), PULSE)
    state, session = program.spawn(), Session(program)
    assert isinstance(state, NativeState), "the bench runs the numba backend"
    x, y = np.zeros((1, PULSE), np.float32), np.zeros((1, PULSE), np.float32)
    return {
        MACHINE: state.run_machine,
        "State.step(outputs)": lambda: state.step(x, y),
        "State.step": lambda: state.step(x),
        "Session.push": lambda: session.push(x),
    }


def call_times(rounds: int = ROUNDS, count: int = CALLS) -> list[CallTime]:
    """Return the medians over rounds of ``count`` calls of each kind."""
    steppers = {name: partial(timeit, call, number=count) for name, call in calls().items()}
    rounds_of = alternate(steppers, rounds, 1, 1).rounds
    times = {name: [time.p50_us / count for time in round_times] for name, round_times in rounds_of.items()}
    machine = times[MACHINE]
    return [
        CallTime(name, median(us), median(call_us - machine_us for call_us, machine_us in zip(us, machine)))
        for name, us in times.items()
    ]
