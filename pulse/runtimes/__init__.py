"""Written models in other runtimes: onnxruntime and tract."""
