"""A model with two audio inputs, as an echo canceller has."""

from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto

import pulse
from pulse.facts import Array
from streaming import Session
from tests.noise import next_noise, normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks.models import build

TAPS = normal_noise(1, 1, 9, seed=7) / 5


def canceller() -> ModelProto:
    """mic [1, T] and far [1, T] -> out [1, T], mic minus a filter over far, and a little of a GRU that reads both.

    residue [1, T] is what was taken away.
    """
    rng = np.random.default_rng(8)
    nodes = [
        node("Unsqueeze", "far one", "far3"),
        node("Pad", "far3 before", "padded"),
        node("Conv", "padded taps", "echo3"),
        node("Squeeze", "echo3 one", "echo"),
        node("Concat", "mic far", "both", axis=0),
        node("Transpose", "both", "frames", perm=[1, 0]),
        node("Unsqueeze", "frames one", "sequence"),
        node("GRU", "sequence w r", "steps", hidden_size=1),
        node("Squeeze", "steps inner", "state"),
        node("Transpose", "state", "gate", perm=[1, 0]),
        node("Mul", "gate small", "bit"),
        node("Add", "echo bit", "residue"),
        node("Sub", "mic residue", "out"),
    ]
    constants = {
        "one": np.array([1]),
        "inner": np.array([1, 2]),
        "before": np.array([0, 0, 8, 0, 0, 0]),
        "taps": TAPS,
        "w": next_noise(rng, 1, 3, 2),
        "r": next_noise(rng, 1, 3, 1) / 2,
        "small": np.float32([[0.125]]),
    }
    inputs = {"mic": [1, "T"], "far": [1, "T"]}
    return build(nodes, inputs, {"out": [1, "T"], "residue": [1, "T"]}, constants)


@cache
def offline() -> Any:
    """The analysed model of the echo canceller."""
    return pulse.load(canceller()).analyse()


@cache
def cancelling_program(pulse_frames: int = 160, backend: str = "numba") -> Any:
    return pulse.stream(canceller(), pulse=pulse_frames, backend=backend)


def cancelled_sound(program: Any, mic: Array, far: Array) -> dict[str, Array]:
    """The session outputs for two signals of one length, each as one row."""
    session = Session(program)
    parts = session.push({"mic": mic[None], "far": far[None]}), session.flush()
    return {name: np.concatenate([part[name] for part in parts], axis=1)[0] for name in parts[0]}
