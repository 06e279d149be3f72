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
"""Operator -> what makes the new value of the old one and its other inputs; the second input if it is empty."""
CHANGING_PREFIXES = (
    *("ResourceScatter", "ResourceStridedSlice", "ResourceApply", "ResourceSparse", "ResourceCountUpTo"),
    *("Scatter", "StridedSliceAssign", "Apply", "SparseApply", "CountUpTo", "AssignVariable"),
)
"""How operators begin that change the variable that is their first input."""
HANDLE_FORWARDING = ("Identity", "IdentityN", "RefIdentity", "Enter", "RefEnter")
"""Operators that pass on a handle or a reference."""


def changes(op: str) -> bool:
    """Return whether an operator surely changes a variable."""
    return op in ASSIGNMENTS or op.startswith(("ResourceScatter", "ResourceApply"))
