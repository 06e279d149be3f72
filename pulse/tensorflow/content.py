"""What the door of all formats gives, read as a TensorFlow model."""

from pathlib import Path

from pulse.errors import LoadError
from pulse.loading.formats import Content, Reading
from pulse.tensorflow.model import TensorflowModel, load


def read_content(content: Content, reading: Reading) -> TensorflowModel:
    """The model of a file, a folder or bytes. Raises LoadError."""
    source = content.source
    if not isinstance(source, Path | bytes):
        raise LoadError(f"cannot load a {type(source).__name__} as TensorFlow; give a path, or bytes")
    return load(source, reading.inputs, reading.constants, budget=reading.budget)
