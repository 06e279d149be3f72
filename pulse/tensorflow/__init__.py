"""TensorFlow: ``read`` graphs and SavedModels into models, ``operators`` by family; here, their common parts.

load      a graph or SavedModel as a model; ``load(path).session()`` is a session on it
Session   runs of parts of a graph, with variables that keep their values
register_op, register_kernel   your own operators, declared separately from their kernels
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulse.tensorflow.own_operators import register_kernel, register_op
    from pulse.tensorflow.session import Session
    from pulse.tensorflow.tensorflow_model import TensorflowModel, load

__all__ = ["Session", "TensorflowModel", "load", "register_kernel", "register_op"]


def __getattr__(name: str) -> Any:
    """Return the names above, imported on first access."""
    from importlib import import_module

    homes = {"load": "tensorflow_model", "TensorflowModel": "tensorflow_model", "Session": "session"}
    homes |= dict.fromkeys(("register_op", "register_kernel"), "own_operators")
    if name in homes:
        return getattr(import_module(f"pulse.tensorflow.{homes[name]}"), name)
    raise AttributeError(f"module 'pulse.tensorflow' has no attribute {name!r}")
