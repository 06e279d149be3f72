"""The operators of ONNX, in a module for each family: how they are read, inferred backward and written.

``families`` imports all of them.
"""
