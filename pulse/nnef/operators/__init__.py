"""The operators of NNEF and tract, in a module for each family: how they are written and read.

``families`` imports all of them.
"""
