"""Operators of ONNX for images and for training, as a plugin of pulse."""

from pulse_images import losses as losses
from pulse_images import operators as operators
