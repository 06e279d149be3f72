"""Files that are not ONNX, recognised by their first bytes, and what to do with them."""

import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import NamedTuple

from pulse.support.file_bytes import HEAD_BYTES
from pulse.support.wording import choose_wording

RECIPE = re.compile(rb"(\s|#[^\n]*\n)*((title|rate|outputs)\s*=|\[\[\s*stage\s*\]\])")
"""How a recipe begins: see ``pulse.recipes``."""

_ZIP_NAME_OFFSET = 30
"""Where the name of the first file in a zip archive begins."""

_EXPORT = "export it to ONNX"
_MODULE = "write a function that loads the PyTorch module and returns it, and give it as file.py:function"
_FROM_TORCH = "load it with torch and use pulse.from_torch, or export it with torch.onnx.export"


class UnreadableFormat(NamedTuple):
    """A kind of file: whether a head is one, what to call it, and what to do; outside of Python, if that differs."""

    test: Callable[[bytes], bool]
    contents: str
    python_advice: str
    other_advice: str | None = None

    @property
    def advice(self) -> str:
        """What the user may do."""
        return choose_wording(self.python_advice, self.other_advice or self.python_advice)


def _starts(*magics: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(magics)


def _from_fourth(magic: bytes) -> Callable[[bytes], bool]:
    return lambda head: head[4 : 4 + len(magic)] == magic


def _zip_test(*parts: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(b"PK\3\4") and any(part in head[_ZIP_NAME_OFFSET:] for part in parts)


def _is_zeros(head: bytes) -> bool:
    return not any(head)


def _is_safetensors(head: bytes) -> bool:
    return head[5:9] == b"\0\0\0{"


def _is_page(head: bytes) -> bool:
    return head.lstrip().lower().startswith((b"<!doctype html", b"<html"))


def _is_text(head: bytes) -> bool:
    """Return whether it is text without control characters; the last letter may be cut off."""
    try:
        text = getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return all(letter.isprintable() or letter in "\t\n\r" for letter in text)


def _is_recipe(head: bytes) -> bool:
    return _is_text(head) and RECIPE.match(head) is not None


UNREADABLE_FORMATS = (
    UnreadableFormat(_is_zeros, "zeros, or nothing at all", "download or export it again"),
    UnreadableFormat(
        _starts(b"version https://git-lfs"), "a Git LFS pointer, not the file itself", "run git lfs pull"
    ),
    UnreadableFormat(
        _is_page, "a web page", "download the file itself; the link may have led to a page about it"
    ),
    UnreadableFormat(
        _zip_test(b"/data.pkl", b"/.format_version", b"/byteorder", b"/constants.pkl"),
        "a PyTorch file",
        _FROM_TORCH,
        f"{_MODULE}, or export it with torch.onnx.export",
    ),
    UnreadableFormat(_zip_test(b".npy"), "numpy arrays (.npz)", "give the model instead"),
    UnreadableFormat(_starts(b"PK\3\4"), "a zip archive", "unpack it and give the .onnx file in it"),
    UnreadableFormat(
        _starts(*(bytes((0x80, version)) for version in range(2, 6))),
        "a Python pickle, perhaps from PyTorch",
        _FROM_TORCH,
        f"{_MODULE}, or export it with torch.onnx.export",
    ),
    UnreadableFormat(
        _is_safetensors,
        "weights in safetensors",
        "they have no graph: load them into their PyTorch model and use pulse.from_torch",
        f"they have no graph: {_MODULE}",
    ),
    UnreadableFormat(
        _starts(b"GGUF"), "weights in GGUF", f"take the model that they come from and {_EXPORT}"
    ),
    UnreadableFormat(
        _from_fourth(b"ORTM"),
        "a model in onnxruntime's format (.ort)",
        "give the .onnx file it is made from",
    ),
    UnreadableFormat(
        _starts(b"\x89HDF"), "an HDF5 file, perhaps from Keras", f"load it with Keras and {_EXPORT}"
    ),
    UnreadableFormat(_starts(b"\x93NUMPY"), "a numpy array", "give the model instead"),
    UnreadableFormat(
        _starts(b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf"),
        "a compressed file",
        "unpack it and give the .onnx file in it",
    ),
    UnreadableFormat(
        _starts(b"RIFF", b"fLaC", b"OggS", b"ID3"),
        "an audio file",
        "give the model first, then the audio file",
    ),
    UnreadableFormat(
        _starts(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF"), "a picture or a document", "give the model"
    ),
    UnreadableFormat(
        _is_recipe,
        "a recipe",
        "give its path, since it names files in its folder",
    ),
    UnreadableFormat(_is_text, "text", "give the .onnx file"),
)
"""The known formats, in the order in which they are tried."""


def unreadable_format(head: bytes) -> UnreadableFormat | None:
    """Return the kind of a file that begins with ``head``; None if unknown."""
    return next((kind for kind in UNREADABLE_FORMATS if kind.test(head[:HEAD_BYTES])), None)
