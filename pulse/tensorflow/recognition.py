"""Recognise TensorFlow's files by their content."""

from pulse.loading.format_registry import Content

SAVED = "saved_model.pb"


def is_tensorflow(content: Content) -> bool:
    """Return whether content is a GraphDef, a SavedModel, or the folder of one."""
    if content.head:
        return _begins(content.head)
    try:
        return content.path is not None and (content.path / SAVED).is_file()
    except (OSError, ValueError):
        return False


def _begins(head: bytes) -> bool:
    """Return whether bytes begin as a graph's first node does, or as a SavedModel's first graph after its version."""
    if head[:1] == b"\x0a":
        return _byte_after_length(head, 1) in (b"\x0a", b"\x12")
    if len(head) > 3 and head[0] == 0x08 and head[1] < 0x80 and head[2] == 0x12:
        return _byte_after_length(head, 3) == b"\x0a"
    return False


def _byte_after_length(head: bytes, position: int) -> bytes:
    """Return the first byte of the message whose length is at this position."""
    while position < len(head) and head[position] >= 0x80:
        position += 1
    return head[position + 1 : position + 2]
