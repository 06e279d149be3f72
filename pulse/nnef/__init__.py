"""NNEF 1.0: the exchange format of the Khronos Group, and the operators that tract adds to it."""
