"""TFLite files: verified, read, and translated to typed ops."""

from pulse.tflite.read.opening import load

__all__ = ["load"]
