"""Operators that assign variables."""

ASSIGNMENTS: dict[str, str] = {
    "AssignVariableOp": "",
    "AssignAddVariableOp": "AddV2",
    "AssignSubVariableOp": "Sub",
    "Assign": "",
    "AssignAdd": "AddV2",
    "AssignSub": "Sub",
    "ResourceScatterUpdate": "ScatterUpdate",
    "ResourceScatterAdd": "ScatterAdd",
    "ResourceScatterNdUpdate": "TensorScatterUpdate",
    "ResourceScatterNdAdd": "TensorScatterAdd",
    "ResourceStridedSliceAssign": "TensorStridedSliceUpdate",
    "ScatterUpdate": "ScatterUpdate",
    "ScatterAdd": "ScatterAdd",
    "ScatterNdUpdate": "TensorScatterUpdate",
    "ScatterNdAdd": "TensorScatterAdd",
    "StridedSliceAssign": "TensorStridedSliceUpdate",
}
"""Operator -> the operator that computes the new value from the inputs; empty: the second input is the new value."""
CHANGING_PREFIXES = (
    *("ResourceScatter", "ResourceStridedSlice", "ResourceApply", "ResourceSparse", "ResourceCountUpTo"),
    *("Scatter", "StridedSliceAssign", "Apply", "SparseApply", "CountUpTo", "AssignVariable"),
)
"""The prefixes of operators that change the variable that is their first input."""
HANDLE_FORWARDING = ("Identity", "IdentityN", "RefIdentity", "Enter", "RefEnter")
"""Operators that pass on a handle or a reference."""


def changes_variable(op: str) -> bool:
    """Return whether an operator certainly changes a variable."""
    return op in ASSIGNMENTS or op.startswith(("ResourceScatter", "ResourceApply"))
