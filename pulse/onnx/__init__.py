"""The ONNX reader: one function for each operator, by family."""
