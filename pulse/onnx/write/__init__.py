"""The writer: a pulsed model as a standard ONNX file, its state in the open."""
