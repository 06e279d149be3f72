"""TensorFlow: ``read`` graphs and SavedModels into models, ``operators`` by family; here, what these share.

load      a graph or SavedModel as a model; ``load(path).session()`` is a session on it
Session   runs of parts of a graph, with variables that keep what they were assigned
register_op, register_kernel   operators of your own, declared apart from what computes them
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulse.tensorflow.model import TensorflowModel, load
    from pulse.tensorflow.own_operators import register_kernel, register_op
    from pulse.tensorflow.session import Session

__all__ = ["Session", "TensorflowModel", "load", "register_kernel", "register_op"]


def __getattr__(name: str) -> Any:
    """The names above, imported when they are asked for."""
    from importlib import import_module

    homes = {"load": "model", "TensorflowModel": "model", "Session": "session"}
    homes |= dict.fromkeys(("register_op", "register_kernel"), "own_operators")
    if name in homes:
        return getattr(import_module(f"pulse.tensorflow.{homes[name]}"), name)
    raise AttributeError(f"module 'pulse.tensorflow' has no attribute {name!r}")
