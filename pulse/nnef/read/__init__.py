"""Reads NNEF: text to a document, a document to ONNX nodes, which are read as those of any ONNX file."""
