"""Graphs with variables."""

import numpy as np

from tests.pulse.tensorflow.graphs import I32, GraphDefBuilder, Shape


def counter(resource: bool) -> GraphDefBuilder:
    """A number that is read, raised by one, read, and raised again."""
    builder = GraphDefBuilder()
    builder.const("first", 0, np.int32)
    builder.const("one", 1, np.int32)
    if resource:
        builder.node("a", "VarHandleOp", dtype=I32, shape=Shape(()), shared_name="a")
        builder.node("set", "AssignVariableOp", "a", "first", dtype=I32)
        builder.node("read", "ReadVariableOp", "a", dtype=I32)
        builder.node("before", "Identity", "read", T=I32)
        builder.node("add", "AssignAddVariableOp", "a", "one", dtype=I32)
        builder.node("once", "ReadVariableOp", "a", "^add", dtype=I32)
        builder.node("add2", "AssignAddVariableOp", "a", "one", "^add", dtype=I32)
        builder.node("twice", "ReadVariableOp", "a", "^add2", dtype=I32)
        builder.node("known", "VarIsInitializedOp", "a")
    else:
        builder.node("a", "VariableV2", dtype=I32, shape=Shape(()))
        builder.node("set", "Assign", "a", "first", T=I32)
        builder.node("read", "Identity", "a", T=I32)
        builder.node("before", "Identity", "read", T=I32)
        builder.node("once", "AssignAdd", "a", "one", T=I32)
        builder.node("after", "Identity", "once", T=I32)
        builder.node("twice", "AssignAdd", "once", "one", T=I32)
        builder.node("known", "IsVariableInitialized", "a", dtype=I32)
    builder.node("init", "NoOp", "^set")
    return builder
