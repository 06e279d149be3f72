"""A SavedModel with a layer that keeps its state."""

from pathlib import Path

from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, Call, GraphDefBuilder, Shape, Type, write_saved_model

RESOURCE = Type("resource")
W, FIRST = normal_noise(4, 4), normal_noise(1, 4, seed=1)


def stateful(folder: Path) -> Path:
    """State = tanh(x w + state); the function is called, and two variables share a name."""
    builder = GraphDefBuilder()
    builder.place("serving_x", 1, 4)
    builder.node("weights", "VarHandleOp", dtype=F32, shape=Shape((4, 4)), shared_name="lstm/Variable")
    builder.node("state", "VarHandleOp", dtype=F32, shape=Shape((1, 4)), shared_name="lstm/Variable")
    builder.function(
        "step",
        [("x", F32), ("w", RESOURCE), ("s", RESOURCE)],
        [
            ("read_w", "ReadVariableOp", ("w",), {"dtype": F32}),
            ("read_s", "ReadVariableOp", ("s",), {"dtype": F32}),
            ("xw", "MatMul", ("x", "read_w:value:0"), {"T": F32}),
            ("sum", "AddV2", ("xw:product:0", "read_s:value:0"), {"T": F32}),
            ("new", "Tanh", ("sum:z:0",), {"T": F32}),
            ("store", "AssignVariableOp", ("s", "new:y:0"), {"dtype": F32}),
            ("late", "ReadVariableOp", ("s", "^store"), {"dtype": F32}),
        ],
        {"y": "late:value:0"},
        ["store"],
    )
    builder.node("call", "StatefulPartitionedCall", "serving_x", "weights", "state", f=Call("step"))
    variables = {"weights": ("b/value", W), "state": ("a/value", FIRST)}
    return write_saved_model(folder, builder, {"x": "serving_x:0"}, {"y": "call:0"}, variables)
