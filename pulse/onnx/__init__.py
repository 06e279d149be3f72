"""ONNX: ``read`` files into models, ``operators`` by family, ``write`` pulsed models; here, what these share."""
