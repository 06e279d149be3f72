"""The gates of recurrent cells. Kernels use this module too, so it imports no op."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

CellKind: TypeAlias = Literal["rnn", "gru", "lstm"]

GATE_COUNTS: Mapping[CellKind, int] = {"rnn": 1, "gru": 3, "lstm": 4}
"""How many gates a cell has; in the order of ONNX: gru z r h, lstm i o f c."""
