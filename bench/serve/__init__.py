"""How many streams a server holds in real time, with this project and with onnxruntime as its engine."""
