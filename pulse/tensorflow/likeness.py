"""Telling TensorFlow's files by their content."""

import os
from os import PathLike
from pathlib import Path
from typing import TypeGuard, cast

_HEAD = 64
SAVED = "saved_model.pb"


def is_tensorflow(source: object) -> "TypeGuard[str | PathLike[str] | bytes]":
    """Whether a source of a model is a GraphDef, a SavedModel, or the folder of one."""
    if isinstance(source, bytes):
        return _begins(source[:_HEAD])
    if not isinstance(source, str | PathLike):
        return False
    try:
        path = Path(os.fspath(cast("str | PathLike[str]", source)))
        if path.is_dir():
            return (path / SAVED).is_file()
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return _begins(file.read(_HEAD))
    except (OSError, ValueError, TypeError):
        return False


def _begins(head: bytes) -> bool:
    """Whether bytes begin as a graph's first node does, or as a SavedModel's first graph behind its version."""
    if head[:1] == b"\x0a":
        return _inside(head, 1) in (b"\x0a", b"\x12")
    if len(head) > 3 and head[0] == 0x08 and head[1] < 0x80 and head[2] == 0x12:
        return _inside(head, 3) == b"\x0a"
    return False


def _inside(head: bytes, at: int) -> bytes:
    """The first byte of a message whose length stands at a place."""
    while at < len(head) and head[at] >= 0x80:
        at += 1
    return head[at + 1 : at + 2]
