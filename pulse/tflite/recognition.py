"""Recognise TFLite files by their content."""

IDENTIFIER = b"TFL3"


def is_tflite(head: bytes) -> bool:
    """Return whether a file begins as a TFLite model does."""
    return head[4:8] == IDENTIFIER
