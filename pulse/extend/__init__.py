"""All that an operator from outside this package is made of; kernels are in ``pulse.extend.kernels``.

See docs/extend.md for a whole operator: its op, its relation to the stream, its translator, its kernel.

operator      registers a translator: a function from a NodeContext to the outlets of the node
NodeContext   the node while it is translated: inputs, attributes, facts; ``wire`` adds ops
Op            a new operation: facts, eval (plain numpy, the oracle), relation, work
relations     Pointwise, Window, Ends, Positional, Cumulative, Banded, Tail, Final, Whole
Check         values of an operand that have no result
Stateful      a pulsed operation with a state
implements    registers another implementation of ops, for the numpy backend
the ops       that translators are mostly made of
"""

from pulse.dim import Symbol, SymbolScope, TDim, ceil_div, dim_max, dim_min
from pulse.errors import FactError, InputError, LoadError
from pulse.facts import Array, DType, Shape, TypedFact, is_symbolic, volume
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.registry import operator
from pulse.ops.check import Check
from pulse.ops.clock import Clock
from pulse.ops.concat import Concat
from pulse.ops.conv import Conv
from pulse.ops.dims import broadcast_shapes, normal_axis, require_at_least, unify
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_within import RangeCheck
from pulse.ops.gather import Gather
from pulse.ops.matmul import MatMul
from pulse.ops.norm import Softmax
from pulse.ops.op import (
    Banded,
    Cumulative,
    Ends,
    Env,
    Final,
    Op,
    Pointwise,
    Positional,
    Relation,
    Tail,
    Whole,
    Window,
)
from pulse.ops.pad import Pad
from pulse.ops.reduce import Reduce
from pulse.ops.scatter import ScatterND
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.ops.stateful import Stateful
from pulse.ops.time_position import Range
from pulse.ops.work import Work
from pulse.program.backends.implementations import implements

__all__ = [
    "AddAxis",
    "Array",
    "Banded",
    "Cast",
    "Check",
    "Clock",
    "Concat",
    "Conv",
    "Cumulative",
    "DType",
    "Elementwise",
    "Ends",
    "Env",
    "Expand",
    "FactError",
    "Final",
    "Gather",
    "InputError",
    "LoadError",
    "MatMul",
    "NodeContext",
    "Op",
    "OutletId",
    "Pad",
    "Pointwise",
    "Positional",
    "Range",
    "RangeCheck",
    "Reduce",
    "Relation",
    "RemoveAxis",
    "Reshape",
    "ScatterND",
    "Shape",
    "Slice",
    "Softmax",
    "Stateful",
    "Symbol",
    "SymbolScope",
    "TDim",
    "Tail",
    "Transpose",
    "TypedFact",
    "Whole",
    "Window",
    "Work",
    "broadcast_shapes",
    "ceil_div",
    "dim_max",
    "dim_min",
    "implements",
    "is_symbolic",
    "normal_axis",
    "operator",
    "require_at_least",
    "unify",
    "volume",
]
