"""NNEF archives from text and tensors, and the result of reading a text."""

import gzip
import io
import tarfile
from collections.abc import Mapping

import numpy as np

import pulse
from pulse.facts import Array
from pulse.models import TypedModel
from pulse.nnef.tensors import dump_tensor

HEAD = "version 1.0;\n"


def pack(files: Mapping[str, bytes], compressed: bool = True) -> bytes:
    """Pack any files as an archive."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(memory.getvalue()) if compressed else memory.getvalue()


def archive(text: str, **tensors: Array) -> bytes:
    """An archive of a graph and its tensors."""
    files = {f"{label}.dat": dump_tensor(value, label) for label, value in tensors.items()}
    return pack({"graph.nnef": text.encode(), **files})


def graph(body: str, inputs: str = "x", outputs: str = "y", head: str = "") -> str:
    """Return a document whose graph has this body."""
    return f"{HEAD}{head}graph g({inputs}) -> ({outputs})\n{{\n{body}\n}}\n"


def load_text(text: str, **tensors: Array) -> TypedModel:
    """The model of a text, analysed."""
    return pulse.load(archive(text, **tensors)).model.analyse()


def outputs_of(body: str, x: Array, outputs: str = "y", head: str = "", **tensors: Array) -> list[Array]:
    """The outputs of a body for an f32 input x of constant shape."""
    declared = f"x = external(shape = {[*x.shape]});\n{body}"
    results = load_text(graph(declared, outputs=outputs, head=head), **tensors).run(
        {"x": x.astype(np.float32)}
    )
    return [results[name] for name in results]
