"""TFLite files: verified, read, and translated to typed ops."""

from pulse.tflite.opening import load

__all__ = ["load"]
