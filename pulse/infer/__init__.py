"""Inference of types and shapes from inputs and from outputs, on a model as its file states it."""
