"""Writes NNEF: a model as ONNX operators, each said in NNEF's and tract's, its state carried by a scan."""
