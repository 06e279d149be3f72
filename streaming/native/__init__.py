"""The path that sound takes without Python: no GIL, no allocation, no lock, no exception.

Memory is allocated by Python before anything runs. What the functions here share are structs (``pulse.jit.structs``):
settings that never change, counters with one writer each, and addresses of buffers.
"""
