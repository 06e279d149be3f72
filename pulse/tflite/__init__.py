"""TFLite files: verified, read, and translated to typed ops."""

from pulse.tflite.opening import is_tflite, load

__all__ = ["is_tflite", "load"]
