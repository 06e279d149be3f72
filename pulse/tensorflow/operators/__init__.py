"""The operators of TensorFlow, in a module for each family, with a function for each operator.

``families`` imports all of them.
"""
