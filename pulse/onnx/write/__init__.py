"""The writer: a pulsed model as a standard ONNX file, with its states as inputs and outputs."""
