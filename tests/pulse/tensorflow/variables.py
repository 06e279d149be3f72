"""Graphs with variables."""

import numpy as np

from tests.pulse.tensorflow.graphs import I32, Shape, Sketch


def counter(resource: bool) -> Sketch:
    """A number that is read, raised by one, read, and raised again."""
    sketch = Sketch()
    sketch.const("first", 0, np.int32)
    sketch.const("one", 1, np.int32)
    if resource:
        sketch.node("a", "VarHandleOp", dtype=I32, shape=Shape(()), shared_name="a")
        sketch.node("set", "AssignVariableOp", "a", "first", dtype=I32)
        sketch.node("read", "ReadVariableOp", "a", dtype=I32)
        sketch.node("before", "Identity", "read", T=I32)
        sketch.node("add", "AssignAddVariableOp", "a", "one", dtype=I32)
        sketch.node("once", "ReadVariableOp", "a", "^add", dtype=I32)
        sketch.node("add2", "AssignAddVariableOp", "a", "one", "^add", dtype=I32)
        sketch.node("twice", "ReadVariableOp", "a", "^add2", dtype=I32)
        sketch.node("known", "VarIsInitializedOp", "a")
    else:
        sketch.node("a", "VariableV2", dtype=I32, shape=Shape(()))
        sketch.node("set", "Assign", "a", "first", T=I32)
        sketch.node("read", "Identity", "a", T=I32)
        sketch.node("before", "Identity", "read", T=I32)
        sketch.node("once", "AssignAdd", "a", "one", T=I32)
        sketch.node("after", "Identity", "once", T=I32)
        sketch.node("twice", "AssignAdd", "once", "one", T=I32)
        sketch.node("known", "IsVariableInitialized", "a", dtype=I32)
    sketch.node("init", "NoOp", "^set")
    return sketch
