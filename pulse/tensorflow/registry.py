"""The registry of TensorFlow operators."""

from typing import TYPE_CHECKING

from pulse.infer.rules import Rules
from pulse.infer.translators import Translators

if TYPE_CHECKING:
    from pulse.tensorflow.node import TensorflowNode

DOMAIN = "tensorflow"
"""The domain of TensorFlow's operators for ``pulse.operator``."""

TRANSLATORS: "Translators[TensorflowNode]" = Translators()
"""Operator -> the function of this package that wires it."""
tensorflow_op = TRANSLATORS.register
RULES = Rules()
"""Operator -> its rule of inference."""
rule = RULES.rule


def own_name(op_type: str) -> str:
    """Return the name of a TensorFlow operator for ``pulse.operator``."""
    return f"{DOMAIN}::{op_type}"
