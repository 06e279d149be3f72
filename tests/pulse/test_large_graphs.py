"""Graphs of many nodes: each step takes time in proportion to their number, so 100,000 nodes are no trouble."""

import gc
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.program.native.native_program import NativeProgram
from pulse.support.collector import GC_THRESHOLD_OBJECTS, fewer_collections
from tests.invariants.hostile_models import model
from tests.pulse.cases.build import node


def chain(count: int) -> ModelProto:
    """Each node reads the one before."""
    kinds = ("Relu", "Neg", "Abs", "Sigmoid")
    return model(
        [
            node(kinds[k % 4], f"v{k}" if k else "x", "y" if k == count - 1 else f"v{k + 1}")
            for k in range(count)
        ]
    )


def negations(count: int) -> ModelProto:
    return model(
        [node("Neg", f"v{k}" if k else "x", "y" if k == count - 1 else f"v{k + 1}") for k in range(count)]
    )


def fan(count: int) -> ModelProto:
    """Many equal nodes that read one wire."""
    return model(
        [
            *(node("Tanh", "x", f"v{k}") for k in range(count)),
            node("Sum", " ".join(f"v{k}" for k in range(count))),
        ]
    )


def fan_of_constants(count: int) -> ModelProto:
    """Many different nodes that read one wire."""
    nodes = [node("Add", f"x c{k}", f"v{k}") for k in range(count)]
    return model(
        [*nodes, node("Sum", " ".join(f"v{k}" for k in range(count)))],
        {f"c{k}": np.float32(k) for k in range(count)},
    )


def outputs(count: int) -> ModelProto:
    """Many outputs, each of its own node."""
    proto = fan_of_constants(count)
    first_output = [proto.graph.output[0]]
    del proto.graph.output[:]
    for k in range(count):
        proto.graph.output.add().CopyFrom(first_output[0])
        proto.graph.output[k].name = f"v{k}"
    return proto


def lines_run(source: ModelProto) -> int:
    """Lines of Python that the analysis runs: counted, not timed."""
    counted: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        counted[event] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        pulse.load(source).analyse().declutter().pulsify()
    finally:
        sys.settrace(before)
    return counted["line"]


def test_long_runs_of_elementwise_ops_compile() -> None:
    """They become chains of a few dozen operations each."""
    program = pulse.stream(negations(1500), pulse=4)
    assert isinstance(program, NativeProgram)
    assert {row.kernel for row in program.instructions} == {"chain", "tick"}
    (port,) = program.inputs
    x = np.arange(np.prod(port.shape), dtype=np.float32).reshape(port.shape)
    np.testing.assert_array_equal(program.spawn().step(x)["y"], x)


@pytest.mark.parametrize("shape", [chain, fan, fan_of_constants, outputs])
def test_lines_grow_with_the_number_of_nodes(shape: Callable[[int], ModelProto]) -> None:
    lines_run(shape(10))
    small, large = lines_run(shape(60)), lines_run(shape(480))
    assert large < 12 * small, (small, large)


def test_fewer_collections_restores_the_gc_thresholds() -> None:
    usual = gc.get_threshold()
    with fewer_collections():
        assert gc.get_threshold()[0] == GC_THRESHOLD_OBJECTS
    assert gc.get_threshold() == usual
    gc.set_threshold(0)
    try:
        with fewer_collections():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*usual)
