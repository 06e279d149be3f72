"""Write NNEF: a model as ONNX operators, each expressed in NNEF's and tract's, with its state in a scan."""
